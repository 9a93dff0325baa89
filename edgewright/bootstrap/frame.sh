#!/bin/sh
# Edgewright bootstrap: attaches one Kubernetes cluster to its centre. Read it, then run it:
#   curl -sSL 'URL' | sh -                  to look first: curl -sSL 'URL' | sh -s -- --dry-run
# It holds a registration token that expires: treat it like a password.
# All of it is one function, called on the last line: half a download does nothing.
main() {
set +ax # neither a trace nor an exported variable may carry a secret
unset token flux agent made drawn found there hex flux_old agent_old flux_age agent_age
set -eu
umask 077
LC_ALL=C
export LC_ALL
exec </dev/null # standard input is this script: no child may read it

#@values
context=${EDGEWRIGHT_KUBE_CONTEXT:-}
yes=${EDGEWRIGHT_YES:-}
dry_run='' uninstall='' leaving=''
limit=30s # of one request to the Kubernetes cluster
anchor=edgewright-anchor

#@common
unwritten() { #- WHAT
	! has 'being terminated|namespaces .* not found' ||
		fail 3 "$1 could not be written: its namespace was taken away meanwhile; run the same line again."
	broken "$1 could not be written."
}

usage() {
	cat <<'HELP'
Attaches the Kubernetes cluster of kubectl's current context to an Edgewright centre.

  curl -sSL 'URL' | sh -s -- OPTIONS

  --dry-run       check everything and say what would be done; change and register nothing
  --uninstall     take away what an earlier run has installed; what Flux has applied stays and runs on;
                  --keep-releases, --purge: less, or more of it
  --context NAME  use this context of kubectl (or set EDGEWRIGHT_KUBE_CONTEXT)
  --yes           do not ask (or set EDGEWRIGHT_YES=1); needed where there is no terminal
  --help          this text

Running it again is safe. It uses HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and so does what it installs.

Exit codes: 0 done; 1 refused by the centre; 2 wrong usage, or not confirmed; 3 tools or Kubernetes fail; 4 rights
are missing; 5 Kubernetes is too old; 6 it belongs to something else; 7 the centre cannot be reached: run the same line
again; 8 an operator's step failed; 9 Flux does not fit.
HELP
}

while [ $# -gt 0 ]; do
	case $1 in
		--dry-run) dry_run=1 ;;
		--uninstall) uninstall=1 ;;
		--keep-releases | --purge) leaving=$1 ;;
		--yes) yes=1 ;;
		--context)
			[ $# -gt 1 ] || fail 2 "--context needs the name of a kubectl context."
			context=$2
			shift
			;;
		--context=*) context=${1#--context=} ;;
		--help | -h)
			usage
			exit 0
			;;
		*) fail 2 "Unknown option '$1'. --help lists the options." ;;
	esac
	shift
done
case $yes in 0 | n | no | false) yes= ;; esac

needs() { #- TOOL [WORDS]
	command -v "$1" >/dev/null 2>&1 || fail 3 "${2:-}'$1' is needed and was not found on this machine.$unchanged"
}
for tool in kubectl curl base64 grep tr sed mktemp sleep; do needs $tool; done
command -v od >/dev/null 2>&1 || needs hexdump "'od' or "

settle
unpack() {
	mkdir "$work/plain" "$work/flux" "$work/hooks" "$work/fetched" "$work/tried"
#@unpack
}
unpack

put() {
	kc apply --server-side --force-conflicts --field-manager=edgewright-bootstrap "$@"
}
apply() { #- [OPTIONS]: manifests from standard input
	put -f - "$@"
}

# --- The centre: everything secret goes through curl's standard input ---
ask() { #- FILE, curl's settings on standard input: leaves the answer in FILE and its HTTP status in status
	out=$1
	: >"$out"
	set --
	[ ! -f "$work/ca.pem" ] || set -- --cacert "$work/ca.pem"
	curl --silent --show-error --connect-timeout 20 --max-time 120 --retry 2 --retry-max-time 60 \
		--proto '=http,https' --globoff --user-agent "edgewright-bootstrap/$version" "$@" \
		--output "$out" --write-out '%{http_code}' --config - >"$work/status" 2>"$work/error" ||
		fail 7 "The centre ($url) cannot be reached; run the same line again. curl says: $(complaint)"
	status=$(cat "$work/status")
}

answer() { #- KEY: the text of one flat key of the JSON answer, without control characters
	tr -s '\000-\037\177' ' ' <"$out" |
		sed -n -E 's/.*"'"$1"'"[[:space:]]*:[[:space:]]*"(([^"\\]|\\.)*)".*/\1/p' |
		sed -e 's/\\[nrt]/ /g' -e 's/\\\(["\\/]\)/\1/g'
}

judge() { #- leaves in state: ok, refused, or nothing for an answer that is not the centre's
	state='' detail='' hint=''
	case $status in
		2??) state=ok ;;
		*) detail=$(answer detail) hint=$(answer hint) ;;
	esac
	case $status in
		429 | 5??) fail 7 "The centre cannot answer now (HTTP $status); run the same line again later. ${detail:+It says: $detail} $hint" ;;
		4??) state=${detail:+refused} ;;
	esac
}

not_the_centre() {
	fail 7 "What answers at $url is not an Edgewright centre (HTTP $status). Is a proxy in between? Run the same line again once that is put right."
}

take_away() { #- OPTIONS: of the centre's script that does it
	ask "$work/uninstall.sh" <<EOF
url = "$url/v1/uninstall.sh"
EOF
	judge
	grep -q '^# Edgewright' "$out" || not_the_centre
	EDGEWRIGHT_KUBE_CONTEXT=$context EDGEWRIGHT_YES=$yes sh "$out" --cluster "$cluster" "$@" || exit $?
}
if [ -n "$uninstall" ]; then
	unset token
	take_away ${dry_run:+--dry-run} ${leaving:+"$leaving"}
	exit 0
fi

# --- The Kubernetes cluster: does it answer, is it new enough, may we, is it free? ---
kc get --raw /version >"$work/version" ||
	broken "The Kubernetes cluster does not answer.$unchanged"
kubernetes=$(tr -d ' \n\t' <"$work/version" | sed -n 's/.*"gitVersion":"\([0-9A-Za-z.+_-]*\)".*/\1/p')
major=${kubernetes#v}
minor=${major#*.}
major=${major%%.*}
minor=${minor%%[!0-9]*}
case $major in '' | *[!0-9]*) fail 3 "The version of Kubernetes cannot be read.$unchanged" ;; esac
if [ "$major" -lt 1 ] || { [ "$major" -eq 1 ] && [ "${minor:-0}" -lt 25 ]; }; then
	fail 5 "This cluster runs Kubernetes $kubernetes; Edgewright needs 1.25 or newer.$unchanged"
fi

drivers='gitrepositories.source.toolkit.fluxcd.io kustomizations.kustomize.toolkit.fluxcd.io'
missing='' everything=yes rbac=rbac.authorization.k8s.io here=--namespace=$namespace all=--all-namespaces
may() { #- WHERE RESOURCE VERB...
	where=$1 what=$2
	shift 2
	for verb; do
		kc auth can-i --quiet "$verb" "$what" "$where" >/dev/null || missing="$missing${missing:+, }$verb $what"
	done
}
may $all '*' '*' # one question for an administrator, the single ones for all others
if [ -n "$missing" ]; then
	missing='' everything='' kinds=''
	may $all clusterroles.$rbac get create patch delete
	may $all namespaces get list watch create patch
	may "$here" secrets get create patch delete
	if [ -n "$flux_files" ]; then
		may $all customresourcedefinitions.apiextensions.k8s.io get list watch
		kinds=$drivers
	fi
	if [ -n "$agent_image" ]; then
		may $all clusterrolebindings.$rbac create patch
		kinds="$kinds serviceaccounts roles.$rbac rolebindings.$rbac deployments.apps"
	fi
	for kind in $kinds; do may "$here" "$kind" create patch; done
fi
lacks() { #- WHAT
	fail 4 "kubectl's user may not do all that is needed (missing: $1); use a context with administrator rights.$unchanged"
}
[ -z "$missing" ] || lacks "$missing"

uid=$(kc get namespace kube-system -o 'jsonpath={.metadata.uid}') ||
	broken "The identity of the cluster cannot be read.$unchanged"
case $uid in
	'' | *[!0-9A-Za-z-]*) fail 3 "The identity of the cluster (the UID of kube-system) cannot be read.$unchanged" ;;
esac

not_leaving() {
	[ "$other_run" != uninstall ] ||
		fail 6 "An --uninstall has begun here and has not ended: let it end, or run it again, before this line.$unchanged"
}
find_anchor
not_leaving

lookup() { #- SECRET: leaves its labels, version and password in found_* and found
	there=$(kc get secret "$1" -n "$namespace" --ignore-not-found -o 'go-template={{with .metadata.labels}}{{with index . "edgewright.dev/cluster"}}{{.}}{{end}}|{{with index . "edgewright.dev/generation"}}{{.}}{{end}}{{else}}|{{end}}|{{.metadata.resourceVersion}}|{{with .data}}{{with index . "password"}}{{base64decode .}}{{end}}{{end}}') ||
		broken "The Secret $namespace/$1 cannot be read.$unchanged"
	IFS='|' read -r found_cluster found_generation found_version found <<EOF
$there
EOF
	case $there in
		'' | "$cluster|"*) ;;
		'|'*) fail 6 "Namespace '$namespace' has a Secret '$1' that Edgewright did not make: something else seems to drive this cluster.$unchanged" ;;
		*) belongs "$found_cluster" ;;
	esac
	found_generation=$(number "$found_generation")
	newer "$found_generation"
}

is_secret() { #- PREFIX VALUE: is it what fresh makes?
	case $2 in "${1}_"*) ;; *) return 1 ;; esac
	hex=${2#"${1}_"}
	case $hex in *[!0-9a-f]*) return 1 ;; esac
	[ ${#hex} -eq 64 ]
}

fresh() { #- PREFIX: leaves a new secret of 256 bits in made
	made=${1}_$({ od -An -v -tx1 -N32 /dev/urandom || hexdump -v -n 32 -e '1/1 "%02x"' /dev/urandom; } 2>/dev/null |
		tr -cd '0-9a-f')
	is_secret "$1" "$made" || fail 3 "No random secret could be made from /dev/urandom."
}

elsewhere=$(kc get secrets --all-namespaces --field-selector metadata.name=edgewright-agent \
	-l "edgewright.dev/cluster,edgewright.dev/cluster!=$cluster" \
	-o "jsonpath={range .items[*]}${label}cluster} in namespace {.metadata.namespace} {end}") || elsewhere=
[ -z "$elsewhere" ] || belongs "${elsewhere%% }"

lookup flux-secrets
lookup edgewright-agent

# --- Flux: there and fit for this cluster's repository, ours, or absent ---
flux_state=absent unfit=
if [ -n "$flux_files" ]; then
	for need in gitrepositories.source/v1 kustomizations.kustomize/v1 helmreleases.helm/v2; do
		kind=${need%/*}.toolkit.fluxcd.io
		there=$(kc get customresourcedefinition "$kind" --ignore-not-found -o "jsonpath=${label}cluster}| {.spec.versions[?(@.served==true)].name} ") ||
			broken "What this cluster has of Flux cannot be read.$unchanged"
		case $there in
			'') unfit="$unfit${unfit:+, }there is no $kind" ;;
			"$cluster|"*) flux_state=ours ;;
			*)
				[ "$flux_state" = ours ] || flux_state=found
				case $there in *" ${need#*/} "*) ;; *) unfit="$unfit${unfit:+, }$kind is not served as ${need#*/}" ;; esac
				;;
		esac
	done
	[ "$flux_state" != found ] || [ -z "$unfit" ] ||
		fail 9 "The Flux that is on this cluster does not fit its repository ($unfit). Upgrade it, or take it away so that the centre's is installed.$unchanged"
fi
install_flux=
[ -z "$flux_files" ] || [ -z "$flux_offer" ] || [ "$flux_state" = found ] || install_flux=yes
# A Helm release of Edgewright's that an earlier life has left would not let this one's begin.
left=
for release in $(kc get secrets --all-namespaces -l owner=helm -o 'jsonpath={.items[*].metadata.labels.name}'); do
	case $release in "edge-cluster-$cluster") ;; edge-cluster-*-*-*-*-*) left=$release ;; esac
done
[ -z "$install_flux$left" ] || [ -n "$everything" ] ||
	lacks "all rights, for ${left:-Flux}"

describe

# --- What the centre has to give, before anything is changed ---
fetch() { #- WHAT: manifests of the centre, into the folder fetched
	ask "$work/fetched/$1.yaml" <<EOF
url = "$url/v1/cluster/$cluster/install/$1"
header = "Authorization: Bearer $token"
EOF
	judge
	case $state in
		ok) grep -q '^apiVersion:' "$out" || not_the_centre ;;
		refused) fail 1 "Refused by the centre: $detail $hint$unchanged" ;;
		*) not_the_centre ;;
	esac
}
[ -z "$install_flux" ] || fetch flux
[ -z "$agent_image" ] || fetch agent
asks=
if [ -n "$everything" ] && [ -n "$agent_image" ] && [ -n "$flux_files" ]; then
	asks=no
	if kc get validatingadmissionpolicies.v1.admissionregistration.k8s.io -o name >/dev/null; then
		fetch fetching-policy
		fetch fetching-right
		asks=yes
	fi
fi

# --- A dry run on the server refuses what this user may not grant, as the real one does ---
rehearse() { #- 'default' stands in for a namespace that is yet to come; only missing rights count there
	set -- "$namespace" ${install_flux:+"$flux_namespace"}
	there=" $(kc get namespace "$@" --ignore-not-found -o name | tr '\n' ' ')" stand_in=
	for space; do
		case $there in
			*" namespace/$space "*) ;;
			*) stand_in="${stand_in}s/^\\( *\\)namespace: $space\$/\\1namespace: default/;" ;;
		esac
	done
	set --
	for file in "$work"/plain/* "$work"/flux/* "$work"/fetched/*.yaml; do
		[ -f "$file" ] || continue
		sed -e "$stand_in" "$file" >"$work/tried/$#"
		set -- "$@" -f "$work/tried/$#"
	done
	[ $# -gt 0 ] || return 0
	put --dry-run=server "$@" >/dev/null && return
	# What comes earlier in the same run is not there in a dry one.
	sed -E '/^Warning: | not found$|no matches for kind|could not find the requested resource|^ensure CRDs |being terminated|not support dry run/d' "$work/error" >"$work/said"
	cat "$work/said" >"$work/error"
	! has 'attempting to grant| cannot [a-z]+ resource ' ||
		fail 4 "kubectl's user may not do or grant all that is needed; use a context with administrator rights.$unchanged kubectl says: $(complaint)"
	[ -n "$stand_in" ] || ! has . || broken "The cluster would refuse what is to be applied.$unchanged"
}
rehearse

if [ -n "$dry_run" ]; then
	say "Dry run; nothing is changed or registered. This $here would be attached to $url as '$name' ($cluster)."
	say "It would make, if they are not there: the ClusterRole '$anchor', which owns the rest; the namespace '$namespace' with the Secrets 'flux-secrets' and 'edgewright-agent'."
	say "It would then register (the token is valid until $expires) and apply these files:"
	for file in "$work"/plain/* "$work"/flux/*; do
		[ ! -f "$file" ] || say "  ${file##*/}"
	done
	[ -z "$left" ] || say "It would take away the Helm release $left, which an earlier attachment has left."
	[ -z "$install_flux" ] || say "It would install Flux $flux_offer, which it fetches from the centre."
	[ "$flux_state" != found ] || say "It would use the Flux that is there."
	[ -z "$agent_image" ] || say "It would install the agent, $agent_image."
	for file in "$work"/hooks/*; do
		[ ! -f "$file" ] || say "It would run the operator's step '${file##*/}'."
	done
	exit 0
fi

confirm "Attach this $here to $url as '$name'?" "attach this $here as '$name'"
say "Attaching this $here to $url as '$name' ($cluster)."

hook() { #- NAME: a step of the operator, in a shell of its own that knows neither token nor secrets
	[ -f "$work/hooks/$1" ] || return 0
	say "Running the operator's step '$1'."
	# shellcheck disable=SC2016 # the inner shell expands it
	EDGEWRIGHT_CLUSTER=$cluster EDGEWRIGHT_NAME=$name EDGEWRIGHT_NAMESPACE=$namespace \
		EDGEWRIGHT_URL=$url EDGEWRIGHT_KUBE_CONTEXT=$context sh -eu -c '
			kubectl() { command kubectl ${EDGEWRIGHT_KUBE_CONTEXT:+--context "$EDGEWRIGHT_KUBE_CONTEXT"} "$@"; }
			. "$1"' "edgewright-$1" "$work/hooks/$1" ||
		fail 8 "The operator's step '$1' has failed. Run the same line again once its cause is gone."
}

# --- The secrets: made here, written here first, then registered; a repeat finds and keeps them ---
encode() { #- VALUE: base64 on one line; a here-document, because an argument would be visible to others
	tr -d '\n' <<EOF | base64 | tr -d '\n'
$1
EOF
}

make_anchor() {
	kc create -f - >/dev/null <<EOF
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: $anchor
  labels: {edgewright.dev/cluster: "$cluster", edgewright.dev/generation: "$generation"}
  annotations:
    edgewright.dev/purpose: Owns what Edgewright's bootstrap installed on this cluster; gives no rights.
    edgewright.dev/run: "$run"
rules: []
EOF
}

mark() { #- VERB WORD: on the anchor, if it is as it was seen last
	kc "$1" clusterrole "$anchor" --overwrite "edgewright.dev/$2" --resource-version="$anchor_version" >/dev/null ||
		has 'modified|NotFound' || unwritten "The ClusterRole $anchor"
}

owned() { #- GENERATION: lines of metadata
	cat <<EOF
  labels: {edgewright.dev/cluster: "$cluster", edgewright.dev/generation: "$1", edgewright.dev/part-of: "bootstrap"}
  ownerReferences:
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: $anchor, uid: "$anchor_uid"}
EOF
}

stamp() { #- manifests from standard input, as owned
	kc patch --local --type=merge -f - -o json --patch "metadata:
$(owned "$generation")"
}

make_namespace() { #- NAME: one of others stays
	there=$(kc get namespace "$1" --ignore-not-found -o 'jsonpath={.metadata.deletionTimestamp}|{.metadata.ownerReferences[?(@.name=="edgewright-anchor")].uid}') || there=
	case $there in
		'|') return ;;
		'' | "|$anchor_uid") ;;
		?*) #- it goes, or will, as its owner has
			say "The namespace '$1' is being deleted; waiting for it to go."
			limit=0
			kc wait --for=delete "namespace/$1" --timeout=120s >/dev/null ||
				fail 3 "The namespace '$1' is being deleted and does not go. kubectl get namespace $1 -o yaml says what it waits for; --uninstall takes away what is Edgewright's."
			limit=30s there=
			;;
	esac
	{
		printf '%s\n' 'apiVersion: v1' 'kind: Namespace' 'metadata:' "  name: $1" \
			'  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}'
		owned "$generation"
	} >"$work/namespace"
	if [ -n "$there" ]; then
		apply <"$work/namespace" >/dev/null || unwritten "The namespace '$1'"
		return 0
	fi
	kc create -f - --field-manager=edgewright-bootstrap <"$work/namespace" >/dev/null || {
		has AlreadyExists || unwritten "The namespace '$1'"
		return 0 #- by another run
	}
	say "Made the namespace '$1'."
}

secret() { #- NAME NAMESPACE GENERATION [VERSION]: up to its content; every write changes its version
	printf '%s\n' 'apiVersion: v1' 'kind: Secret' 'metadata:' "  name: $1" "  namespace: $2" \
		"  annotations: {edgewright.dev/run: \"$run\"}"
	[ -z "${4:-}" ] || echo "  resourceVersion: \"$4\""
	owned "$3"
}

write_secret() { #- NAME PASSWORD GENERATION VERSION: if it still has that version; leaves the next one in written
	written=$({
		secret "$1" "$namespace" "$3" "$4"
		cat <<EOF
data:
  username: $(encode "$cluster")
  password: $(encode "$2")
EOF
		[ ! -f "$work/ca.pem" ] || echo "  ca.crt: $(base64 <"$work/ca.pem" | tr -d '\n')"
		[ "$1" != edgewright-agent ] ||
			printf '  %s\n' "url: $(encode "$url")" "uuid: $(encode "$cluster")" "generation: $(encode "$3")"
	} | apply -o "$version_only")
}

reserve_secret() { #- NAME: makes it without content; leaves its version in found_version
	found_version=$(secret "$1" "$namespace" "$generation" | kc create -f - -o "$version_only")
}

# Runs that meet end with the same secrets: what is there and fits is kept, and nothing is written over unseen.
settle_secret() { #- NAME PREFIX [DEAD]: leaves what it holds in made, and held before in found
	tries=0 drawn=
	while :; do
		tries=$((tries + 1))
		[ "$tries" -le 9 ] || unwritten "The Secret $namespace/$1"
		lookup "$1"
		made=$found
		if [ "$found_generation" != "$generation" ] || [ "$made" = "${3:-}" ] || ! is_secret "$2" "$made"; then
			[ -n "$drawn" ] || fresh "$2"
			made=${drawn:-$made} drawn=${drawn:-$made}
		fi
		[ -n "$found_version" ] || reserve_secret "$1" || {
			has AlreadyExists && continue
			unwritten "The Secret $namespace/$1"
		}
		write_secret "$1" "$made" "$generation" "$found_version" && break
		has 'modified|NotFound' || unwritten "The Secret $namespace/$1"
	done
}

undo_secret() { #- NAME CURRENT OLD OLD_GENERATION WRITTEN: as before, if nobody has written it since
	if [ "$2" = "$3" ]; then
		return 0
	elif [ -n "$3" ]; then
		write_secret "$1" "$3" "$4" "$5" && return 0
	else
		remove "/api/v1/namespaces/$namespace/secrets/$1" "$5" && return 0
	fi
	has 'modified|Conflict|NotFound' || say "The Secret $namespace/$1 could not be put back as it was."
}

undo_anchor() { #- it owns all that this run has made
	find_anchor
	[ "$other_run" = "$run" ] && remove "/apis/$rbac/v1/clusterroles/$anchor" "$anchor_version"
}

hook before
[ ! -f "$work/hooks/before" ] || unchanged=

version_only='jsonpath={.metadata.resourceVersion}'
fresh run
run=${made#run_}
made_anchor=
while find_anchor && [ "$other_run" != "$run" ]; do #- again: the question may have taken long
	not_leaving
	if [ -z "$anchor_uid" ]; then
		if make_anchor; then
			made_anchor=yes unchanged=''
		else
			has AlreadyExists || unwritten "The ClusterRole $anchor"
		fi
	else
		[ -z "$other_run" ] ||
			say "NOTICE: Another run has not ended here: it still runs, or it was interrupted. This one goes on with what it has made."
		mark annotate "run=$run"
		made_anchor='' unchanged=''
	fi
done
make_namespace "$namespace"

secrets() { #- [DEAD_FLUX DEAD_AGENT]: leaves both in flux and agent, written down on the cluster
	settle_secret flux-secrets ewf "${1:-}"
	flux=$made flux_old=${flux_old-$found} flux_age=${flux_age-$found_generation} flux_written=$written
	settle_secret edgewright-agent ewa "${2:-}"
	agent=$made agent_old=${agent_old-$found} agent_age=${agent_age-$found_generation} agent_written=$written
	unset made drawn found there
}
secrets
if [ -n "$flux_old$agent_old" ] && [ "$flux" != "$flux_old" ] && [ "$agent" != "$agent_old" ]; then
	say "Replacing the credentials of an earlier generation of this cluster."
fi

ended() { #- nobody else's mark is taken away
	at=/metadata/annotations/edgewright.dev~1run
	kc patch clusterrole "$anchor" --type=json --patch "[{op: test, path: $at, value: '$run'}, {op: remove, path: $at}]" >/dev/null
}

still_anchored() { #- what is made without its anchor is collected
	seen=$anchor_uid
	find_anchor
	not_leaving
	[ "$anchor_uid" = "$seen" ] ||
		fail 3 "The ClusterRole $anchor was taken away meanwhile: run the same line again."
}

# --- Registration ---
register() {
	still_anchored
	ask "$work/answer" <<EOF
url = "$url/v1/register"
header = "Authorization: Bearer $token"
header = "Content-Type: application/json"
data = "{\"kube_system_uid\":\"$uid\",\"kubernetes_version\":\"$kubernetes\",\"flux_secret\":\"$flux\",\"agent_secret\":\"$agent\"}"
EOF
	judge
}

register
if [ "$state" = refused ] && [ "$(answer code)" = credential_revoked ]; then
	say "The centre has revoked the credentials that were here; making new ones."
	secrets "$flux" "$agent"
	register
fi
say "The Secrets 'flux-secrets' and 'edgewright-agent' are in namespace '$namespace'."
[ "$state" != ok ] || state=$(answer state)
case $state in
	accepted) say "Registered; the centre has accepted this cluster as '$name'." ;;
	pending)
		say "Registered; an operator must accept this cluster now. Its short code is $(answer short_code | tr -cd '0-9A-Za-z-')."
		;;
	refused)
		printf '%s\n' "edgewright: Refused by the centre: $detail" >&2
		[ -z "$hint" ] || printf '%s\n' "edgewright: $hint" >&2
		if [ -n "$made_anchor" ] && [ -z "$flux_old$agent_old" ] && undo_anchor; then
			exit 1
		fi
		undo_secret flux-secrets "$flux" "$flux_old" "$flux_age" "$flux_written"
		undo_secret edgewright-agent "$agent" "$agent_old" "$agent_age" "$agent_written"
		ended || :
		printf '%s\n' "edgewright: What another run has installed stays; this line, or a fresh one, takes it away with --uninstall." >&2
		exit 1
		;;
	*) not_the_centre ;;
esac
while [ "$anchored" -lt "$generation" ]; do #- one that has come later has raised it further
	mark label "generation=$generation"
	still_anchored
done

# --- The proxies of this machine, for what runs on the cluster ---
through=${HTTPS_PROXY:-${https_proxy:-}} plain_through=${HTTP_PROXY:-${http_proxy:-}}
write_proxy() { #- NAMESPACE
	[ -n "$through$plain_through" ] || return 0
	api=$(kc get service kubernetes -n default -o 'jsonpath={.spec.clusterIP}') || api=
	direct=${NO_PROXY:-${no_proxy:-}}
	direct="$direct${direct:+,}.svc,.cluster.local.,.cluster.local,localhost,127.0.0.1${api:+,$api}"
	{
		secret edgewright-proxy "$1" "$generation"
		echo "data:"
		[ -z "$through" ] || echo "  HTTPS_PROXY: $(encode "$through")"
		[ -z "$plain_through" ] || echo "  HTTP_PROXY: $(encode "$plain_through")"
		echo "  NO_PROXY: $(encode "$direct")"
	} | apply >/dev/null || unwritten "The Secret $1/edgewright-proxy"
}
write_proxy "$namespace"

# --- The manifests: plain ones first, they may bring the kinds that the others need ---
refused() { #- FILE
	broken "The file '${1##*/}' was not applied; put that right and run the same line again."
}

apply_owned() { #- FILE
	stamp <"$1" >"$work/stamped" || refused "$1"
	apply <"$work/stamped" >/dev/null || refused "$1"
	say "Applied ${1##*/}."
}

apply_all() { #- FOLDER
	for file in "$work/$1"/*; do
		[ -f "$file" ] || continue
		if kc get -f "$file" --ignore-not-found --no-headers --show-labels |
			sed -e '/^$/d' -e '/edgewright.dev\/part-of=/d' | grep -q .; then
			apply <"$file" >/dev/null || refused "$file"
			say "Applied ${file##*/}; something in it was here before and stays when Edgewright goes."
		else
			apply_owned "$file"
		fi
	done
}

[ -z "$left" ] || (take_away --leftovers) || exit $?
apply_all plain
if [ -n "$install_flux" ]; then
	make_namespace "$flux_namespace"
	write_proxy "$flux_namespace"
	apply_owned "$work/fetched/flux.yaml"
	say "Flux $flux_offer is installed in namespace '$flux_namespace'."
fi
undriven=
if [ -n "$flux_files" ]; then
	for kind in $drivers; do
		kc wait --for=condition=Established --timeout=30s "customresourcedefinition/$kind" >/dev/null ||
			undriven=yes
	done
	[ -n "$undriven" ] || apply_all flux
fi
if [ -n "$agent_image" ]; then
	apply_owned "$work/fetched/agent.yaml"
else
	say "NOTICE: The centre names no image of the agent, so nothing reports this cluster: it is not Available."
fi
if [ -n "$undriven" ]; then
	ended || still_anchored
	say "NOTICE: Flux is not installed here and the centre has none to give, so nothing pulls the repository: install it, or import it at the centre (edgewright flux import), then run a fresh line."
	exit 0
fi
# --- The agent may ask Flux to fetch, once the API server sees to it that it changes nothing else ---
denied() {
	printf '{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: edgewright-probe, namespace: %s}, spec: {url: "https://edgewright.invalid", interval: 1h}}' "$namespace" |
		kc create --dry-run=server -f - >/dev/null && return 1
	has edgewright-fetching
}
if [ "$asks" = no ]; then
	say "This API server has no ValidatingAdmissionPolicies, so the agent gets no right to ask Flux to fetch. What is changed at the centre comes at Flux's interval."
elif [ -n "$asks" ]; then
	apply_owned "$work/fetched/fetching-policy.yaml"
	tries=30 sure=
	while [ "$sure" != yy ] && [ $tries -gt 0 ]; do
		if denied; then sure=y$sure; else sure=; fi
		tries=$((tries - 1))
		sleep 1
	done
	if [ "$sure" = yy ]; then
		apply_owned "$work/fetched/fetching-right.yaml"
	else
		say "NOTICE: The policy 'edgewright-fetching' is not in force, so what is changed at the centre comes at Flux's interval. Run the same line again."
	fi
fi
hook after
ended || still_anchored
say "Done: '$name' is attached to $url."
exit 0
}
# In braces: cut off anywhere, the last line is a syntax error and not a call without its options.
{ main "$@"; }
