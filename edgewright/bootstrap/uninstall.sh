#!/bin/sh
# Edgewright: takes away from one Kubernetes cluster what its bootstrap line has installed there, and nothing else.
# It holds no secret and needs no centre: it can be kept. Read it, then run it: sh uninstall.sh [OPTIONS]; --help lists them.
# All of it is one function, called on the last line: half a download does nothing.
main() {
set -eu
umask 077
LC_ALL=C
export LC_ALL
exec </dev/null

#@values
context=${EDGEWRIGHT_KUBE_CONTEXT:-}
yes=${EDGEWRIGHT_YES:-}
dry_run='' keep='' purge='' leftovers=''
limit=30s # of one request to the Kubernetes cluster
anchor=edgewright-anchor

#@common
usage() {
	cat <<'HELP'
Takes Edgewright away from the Kubernetes cluster of kubectl's current context; what Flux has applied stays and runs on.

  --dry-run        list what would go; change nothing
  --keep-releases  leave Edgewright's Helm release: its sealed-secrets runs on and opens what is sealed, its ConfigMap
                   edgewright-cluster stays for workloads that read it, and its namespace with both. Nothing upgrades it
  --purge          take away the kind SealedSecret and the sealing keys as well, and with them every Secret that was
                   opened from a SealedSecret; nothing that is sealed for this cluster can be opened ever again.
                   Refused while somebody else uses them
  --cluster UUID   take away that cluster's Edgewright and no other's; needed where marks of several are left
  --context NAME   use this context of kubectl (or set EDGEWRIGHT_KUBE_CONTEXT)
  --yes            do not ask (or set EDGEWRIGHT_YES=1); needed where there is no terminal
HELP
}

while [ $# -gt 0 ]; do
	case $1 in
		--dry-run) dry_run=1 ;;
		--keep-releases) keep=1 ;;
		--purge) purge=1 ;;
		--leftovers) leftovers=1 ;; # of the bootstrap line: no more than the releases of other clusters
		--yes) yes=1 ;;
		--cluster | --context)
			[ $# -gt 1 ] || fail 2 "$1 needs a value. --help lists the options."
			case $1 in --cluster) cluster=$2 ;; *) context=$2 ;; esac
			shift
			;;
		--help | -h)
			usage
			exit 0
			;;
		*) fail 2 "Unknown option '$1'. --help lists the options." ;;
	esac
	shift
done
case $yes in 0 | n | no | false) yes= ;; esac
case $cluster in *[!0-9a-f-]*) fail 2 "--cluster needs the UUID of a cluster.$unchanged" ;; esac
[ -z "$keep" ] || [ -z "$purge" ] || fail 2 "--keep-releases and --purge exclude one another.$unchanged"
for tool in kubectl grep mktemp sed tr wc; do
	command -v "$tool" >/dev/null 2>&1 || fail 3 "'$tool' is needed and was not found on this machine.$unchanged"
done
settle

kc get --raw /version >/dev/null ||
	broken "The Kubernetes cluster does not answer.$unchanged"
[ -n "$cluster" ] || cluster=$(kc get clusterrole "$anchor" --ignore-not-found -o "jsonpath=${label}cluster}") ||
	broken "The ClusterRole $anchor cannot be read.$unchanged"
find_anchor
lacks() { #- WHAT
	fail 4 "kubectl's user may not do all that is needed (missing: $1); use a context with administrator rights.$unchanged"
}
everything=yes
kc auth can-i --quiet '*' '*' --all-namespaces >/dev/null || everything=
if [ -z "$everything" ]; then # what the line needs, to install the agent alone
	missing=
	may_not() { #- VERB RESOURCE...
		for what; do
			[ "$what" != "$1" ] || continue
			kc auth can-i --quiet "$1" "$what" --all-namespaces >/dev/null || missing="$missing${missing:+, }$1 $what"
		done
	}
	rbac=rbac.authorization.k8s.io
	may_not list '*'
	may_not get namespaces clusterroles.$rbac
	may_not patch namespaces clusterroles.$rbac
	may_not delete clusterroles.$rbac
	[ -z "$missing" ] || lacks "$missing"
	[ -z "$purge" ] || lacks "all rights, for --purge"
fi
describe

kinds() { #- OPTIONS: the kinds that can be listed and deleted, a line each
	kc api-resources --verbs=list,delete -o name "$@" | sed -e '/^events/d' -e '/^namespaces$/d' || :
}
listed() { #- KIND[,KIND…] OPTIONS: namespace and name of each object, a line each ('-' is no namespace)
	kc get "$@" -o 'go-template={{range .items}}{{with .metadata.namespace}}{{.}}{{else}}-{{end}} {{.kind}} {{.metadata.name}}{{"\n"}}{{end}}' ||
		broken "What is on the cluster cannot be listed."
}
gone() { #- SECONDS, arguments of kubectl delete: waits until it is
	seconds=$1
	shift
	limit=0
	kc delete "$@" --ignore-not-found --wait --timeout="${seconds}s" >/dev/null || {
		limit=30s
		return 1
	}
	limit=30s
}
change() { #- NAMESPACE KIND NAME PATCH: nothing if it has gone meanwhile. Flux takes back what kubectl has changed in its own name
	kc patch "$2" "$3" -n "$1" --field-manager=edgewright --type=merge --patch "$4" >/dev/null || has 'NotFound|resource type' ||
		broken "$2 $1/$3 could not be changed; run this again."
}
meanwhile() {
	fail 3 "The bootstrap line was run meanwhile. Let it end; then run this again if Edgewright is to go."
}
stuck() { #- WHAT
	broken "$1 did not go; run this again."
}

all=$(kinds | tr '\n' ',')
all=${all%,}
flux=$(kinds --namespaced=true | sed -n '/\.toolkit\.fluxcd\.io$/p')
if [ -z "$cluster" ]; then # no anchor says whose it is: its marks do
	for mark in $(kc get "$all,namespaces" --all-namespaces -l edgewright.dev/part-of=bootstrap -o "jsonpath={range .items[*]}${label}cluster} {end}"); do
		case " $cluster " in *" $mark "*) ;; *) cluster="$cluster${cluster:+ }$mark" ;; esac
	done
	case $cluster in *' '*) fail 2 "Marks of several clusters are here; say whose are to go: --cluster with one of $cluster.$unchanged" ;; esac
fi
called=${cluster:-of no cluster}
[ -z "$name" ] || called="'$name', $called"
ours="edgewright.dev/cluster=${cluster:-none},edgewright.dev/part-of=bootstrap"
fluxes=$(printf %s "$flux" | tr '\n' ',')

# Our Helm releases: what they have made bears their name, as Helm marks it. Those of an earlier life are ours, too:
# a cluster is attached as one at a time.
: >"$work/names"
if [ -z "$keep" ]; then
	kc get secrets --all-namespaces -l owner=helm -o 'go-template={{range .items}}{{.metadata.labels.name}}{{"\n"}}{{end}}' >"$work/helm" ||
		broken "Helm's releases cannot be listed.$unchanged"
	sed -n '/^edge-cluster-[0-9a-f]\{8\}-[0-9a-f-]\{27\}$/p' "$work/helm" >"$work/names"
	case $leftovers$flux in
		helmreleases.* | *[!0-9a-z.]helmreleases.*)
			kc get helmreleases.helm.toolkit.fluxcd.io --all-namespaces -l "edgewright.dev/cluster=${cluster:-none}" -o 'go-template={{range .items}}{{if .spec.releaseName}}{{.spec.releaseName}}{{else}}{{with .spec.targetNamespace}}{{.}}-{{end}}{{.metadata.name}}{{end}}{{"\n"}}{{end}}' >>"$work/names" ||
				broken "Flux's releases cannot be listed.$unchanged"
			;;
	esac
fi
seen=${leftovers:+" edge-cluster-$cluster "}
while read -r release; do
	case "$seen" in *" $release "*) continue ;; esac
	seen="$seen $release "
	echo "$release"
done <"$work/names" >"$work/releases"

released() { #- leaves in the file parts what they have made: namespace or -, kind, name
	: >"$work/parts"
	[ -s "$work/releases" ] || return 0
	kc get "$all,namespaces" --all-namespaces -l app.kubernetes.io/managed-by=Helm -o 'go-template={{range .items}}{{with .metadata.namespace}}{{.}}{{else}}-{{end}} {{.kind}} {{.apiVersion}} {{.metadata.name}} {{with .metadata.annotations}}{{with index . "meta.helm.sh/release-name"}}{{.}}{{end}} {{with index . "helm.sh/resource-policy"}}{{.}}{{end}}{{end}}{{"\n"}}{{end}}' >"$work/helm" ||
		broken "What Helm has installed cannot be listed."
	while read -r space kind api part release policy; do
		{ grep -qxF -e "${release:--}" "$work/releases" && [ "$policy" != keep ]; } || continue
		case $api in */*) kind=$kind.${api#*/}.${api%/*} ;; *) kind=$kind.$api. ;; esac
		echo "$space $kind $part"
	done <"$work/helm" >"$work/parts"
}
take_releases() {
	released
	while read -r space kind part; do
		if [ "$space" = - ]; then
			gone 120 "$kind" "$part" || stuck "$kind $part"
		else
			gone 120 "$kind" "$part" -n "$space" || stuck "$kind $space/$part"
		fi
	done <"$work/parts"
	while read -r release; do
		for space in $(kc get secrets --all-namespaces -l "owner=helm,name=$release" -o 'jsonpath={.items[*].metadata.namespace}'); do
			gone 60 secrets -n "$space" -l "owner=helm,name=$release" || stuck "The Helm release $release"
		done
		say "The Helm release $release is gone; what it has sealed and its keys stay."
	done <"$work/releases"
}
if [ -n "$leftovers" ]; then
	take_releases
	exit 0
fi
# Kind and keys are everybody's: nobody else must pay for --purge. Ours is what our releases and our Flux have put here.
sealing=sealedsecrets.bitnami.com
theirs() { #- of SPACE/NAME OWNER lines, a line each: those that are not ours, ten of them
	while read -r object by; do
		case $by in edge-secrets* | by-hand) continue ;; esac
		! grep -qxF "${object%%/*} Deployment.v1.apps ${object#*/}" "$work/parts" || continue
		echo "$object"
	done | sed -n 1,10p | tr '\n' ' ' | sed 's/ $//'
}
# A controller runs upstream's image, or upstream's program with a sign of upstream's manifests or charts: the rule of the
# chart. Others (sealed-secrets-web, kubeseal) have the words in their names, too.
controllers() { #- of lines, one for each container: namespace and name of what runs such a one
	sed -n -E -e 's/^([^ ]+) .* image=([^ ]*\/)?sealed-secrets-controller([:@][^ ]*)? .*/\1/p' \
		-e '/ runs=\["([^"]*\/)?controller"/{' \
		-e '/ bears=(sealed-secrets,|[^ ,]*,sealed-secrets-controller )|[" ]--key-prefix[=" ]/s/ .*//p' -e '}'
}
payers() { #- leaves in sealed whether the kind is there
	# shellcheck disable=SC2016 # the template has variables of its own
	kc get deployments.apps --all-namespaces -o 'go-template={{define "signs"}} bears={{with .}}{{with index . "app.kubernetes.io/name"}}{{.}}{{end}},{{with index . "name"}}{{.}}{{end}}{{end}}{{end}}{{range .items}}{{$one := .}}{{range .spec.template.spec.containers}}{{$one.metadata.namespace}}/{{$one.metadata.name}}{{template "signs" $one.metadata.labels}}{{template "signs" $one.spec.template.metadata.labels}} image={{.image}} runs={{with .command}}{{printf "%q" .}}{{end}} {{with .args}}{{printf "%q" .}}{{end}}{{"\n"}}{{end}}{{end}}' >"$work/list" ||
		broken "The Deployments cannot be listed.$unchanged"
	found=$(controllers <"$work/list" | theirs)
	[ -z "$found" ] ||
		fail 6 "--purge would take the kind SealedSecret and the sealing keys from a controller that is not Edgewright's: $found. Take that away first, or leave --purge out.$unchanged"
	sealed=$(kc get customresourcedefinition "$sealing" --ignore-not-found -o name) || broken "The kinds cannot be listed.$unchanged"
	[ -n "$sealed" ] || return 0
	kc get "$sealing" --all-namespaces -o 'go-template={{range .items}}{{.metadata.namespace}}/{{.metadata.name}} {{with .metadata.labels}}{{with index . "kustomize.toolkit.fluxcd.io/name"}}{{.}}{{end}}{{end}}{{"\n"}}{{end}}' >"$work/list" ||
		broken "The SealedSecrets cannot be listed.$unchanged"
	found=$(theirs <"$work/list")
	[ -z "$found" ] ||
		fail 6 "--purge would take SealedSecrets that did not come by the cluster's repository, and what was opened from them: $found. Delete them first, or leave --purge out.$unchanged"
}
released
if [ -z "$everything" ] && [ -s "$work/releases" ]; then
	lacks "all rights, for the Helm release $(tr '\n' ' ' <"$work/releases")which --keep-releases leaves"
fi

try_away() { #- KINDS OPTIONS: a dry run on the server refuses what the real one would
	kc delete "$1" --all-namespaces --ignore-not-found --dry-run=server -l "$2" >/dev/null || {
		! has ' cannot [a-z]+ resource ' || lacks "$(complaint)"
		has 'not support dry run' || broken "The cluster would refuse what is to be deleted.$unchanged"
	}
}
if [ -n "$cluster" ]; then
	try_away "$all,namespaces" "$ours"
	if [ -z "$everything" ] && [ -n "$fluxes" ]; then
		try_away "$fluxes" "edgewright.dev/cluster=$cluster"
		for kind in $flux; do
			case $kind in kustomizations.* | helmreleases.*) may_not patch "$kind" ;; esac
		done
		[ -z "$missing" ] || lacks "$missing"
	fi
fi
[ -z "$purge" ] || payers
if [ -z "$anchor_uid" ]; then
	marked=
	[ -z "$cluster" ] || marked=$(
		listed "$all,namespaces" --all-namespaces -l "$ours"
		[ -z "$fluxes" ] || listed "$fluxes" --all-namespaces -l "edgewright.dev/cluster=$cluster"
	)
	if [ -n "$marked" ] || [ -s "$work/releases" ]; then
		say "The ClusterRole $anchor is gone, but not all that it owned."
	elif [ -z "$purge" ]; then
		say "Nothing was installed here ($called), or all of it is gone."
		exit 0
	fi
fi

if [ -n "$dry_run" ]; then
	say "Dry run; nothing is changed. From this $here would go ($called):"
	[ -z "$cluster" ] || listed "$all,namespaces" --all-namespaces -l "$ours" | sed 's/^/edgewright:   /'
	sed 's/^/edgewright:   /' "$work/parts"
	say "  and the ClusterRole $anchor.${purge:+ The kind SealedSecret and the sealing keys would go with all that was opened with them.} What Flux has applied would stay and run on."
	exit 0
fi
confirm "Take Edgewright ($called) away from this $here?${purge:+ With it go the sealing keys, and every Secret that was opened with them.}" "take Edgewright ($called) away from this $here"
say "Taking Edgewright ($called) away from this $here. What Flux has applied stays and runs on."

# From here on a run of the line waits; one that began before, and is taken to have ended, sees this in time.
if [ -n "$anchor_uid" ]; then
	kc annotate clusterrole "$anchor" --overwrite edgewright.dev/run=uninstall >/dev/null ||
		broken "The ClusterRole $anchor could not be marked.$unchanged"
	unchanged=
	find_anchor
	[ "$other_run" = uninstall ] || meanwhile
fi
unchanged=

mine=edgewright.dev/cluster=${cluster:-none}
owned=$(kc get customresourcedefinitions -l "$ours" -o 'go-template={{range .items}}{{.metadata.name}} {{end}}') ||
	broken "What is on the cluster cannot be listed."
pause() { #- a suspended object of Flux takes nothing along when it goes
	for kind in $flux; do
		case $kind in kustomizations.* | helmreleases.*) ;; *) continue ;; esac
		listed "$kind" --all-namespaces -l "$mine" >"$work/list"
		while read -r where _ object; do
			change "$where" "$kind" "$object" '{"spec":{"suspend":true}}'
		done <"$work/list"
	done
}
release() { #- KIND OPTIONS: takes the finalizers away
	listed "$@" --all-namespaces >"$work/list"
	while read -r where _ object; do
		change "$where" "$1" "$object" '{"metadata":{"finalizers":null}}'
	done <"$work/list"
}
leave() { #- KIND OPTIONS: somebody else's Flux ends what it is at, and then sees to the finalizers
	busy=$(kc get "$@" --all-namespaces -o 'go-template={{range .items}}{{with .status}}{{range .conditions}}{{if eq .type "Reconciling"}}{{.status}}{{end}}{{end}}{{end}}{{end}}') ||
		broken "What Flux is at cannot be read."
	case $busy in
		*True*) patience=330 ;; # what one of ours may take, and some
		*) patience=60 ;;
	esac
	gone $patience "$@" --all-namespaces || {
		has 'timed out' || broken "$1 could not be deleted; run this again." # Flux may be at work on it
		release "$@"
		gone 60 "$@" --all-namespaces || stuck "$1"
	}
}
leave_all() { #- PREFIX OPTIONS: of kinds of somebody else's Flux
	prefix=$1
	shift
	for kind in $flux; do
		case " $owned " in *" $kind "*) continue ;; esac
		case $kind in "$prefix"*) leave "$kind" "$@" ;; esac
	done
}

# What brings back the others goes first, so that nothing comes back later, and what has just come back rests as well.
pause
leave_all kustomizations. -l "$mine" --field-selector metadata.name=self-link
pause
leave_all helmreleases. -l "$mine"

# Controllers first: they would bring back what goes, or wait for one another.
gone 120 deployments.apps --all-namespaces -l "$ours" --cascade=foreground || stuck "The controllers"
say "The controllers are gone."
take_releases

leave_all '' -l "$mine"
for kind in $flux; do # nobody is left to see to the finalizers of our Flux
	case " $owned " in *" $kind "*) release "$kind" ;; esac
done
if [ -n "$owned" ]; then
	gone 120 customresourcedefinitions -l "$ours" || stuck "Flux's kinds"
	say "Flux and its kinds are gone."
	all=$(kinds | tr '\n' ',')
	all=${all%,}
fi
gone 60 rolebindings.rbac.authorization.k8s.io --all-namespaces -l "$ours" || stuck "The rights" # before what bounds them
gone 120 "$all" --all-namespaces -l "$ours" || stuck "What is labelled as ours"

# A namespace that is ours goes, unless somebody lives in it.
inside=$(kinds --namespaced=true | sed -e '/^leases\./d' -e '/\.metrics\.k8s\.io$/d' | tr '\n' ',')
listed namespaces -l "$ours" >"$work/namespaces"
while read -r _ _ space; do
	left=$(kc get "${inside%,}" -n "$space" -o 'go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.kind}}/{{.metadata.name}}{{"\n"}}{{end}}{{end}}') ||
		broken "What is in namespace '$space' cannot be listed."
	left=$(printf '%s\n' "$left" | sed -e '/^$/d' -e '/^ConfigMap\/kube-root-ca.crt$/d' -e '/^ServiceAccount\/default$/d' | tr '\n' ' ')
	if [ -z "$left" ]; then
		gone 120 namespace "$space" || stuck "The namespace '$space'"
		say "The namespace '$space' is gone."
	else
		kc patch namespace "$space" --type=merge --patch '{"metadata":{"ownerReferences":null,"labels":{"edgewright.dev/cluster":null,"edgewright.dev/generation":null,"edgewright.dev/part-of":null},"annotations":{"kustomize.toolkit.fluxcd.io/prune":null}}}' >/dev/null ||
			stuck "Our mark on the namespace '$space'"
		say "The namespace '$space' stays, because of what is in it: $left"
	fi
done <"$work/namespaces"

[ -z "$anchor_uid" ] || remove "/apis/rbac.authorization.k8s.io/v1/clusterroles/$anchor" "$anchor_version" || {
	! has 'modified|Conflict' || meanwhile
	has NotFound || stuck "The ClusterRole $anchor"
}

# The kind and the keys belong to no release: whoever has them opens what was sealed for this cluster.
if [ -n "$purge" ]; then
	payers # who has come meanwhile
	# First with what was opened, which the garbage collector finds only as long as it knows the kind.
	[ -z "$sealed" ] || gone 300 "$sealing" --all --all-namespaces --cascade=foreground || stuck "What was sealed"
	gone 120 customresourcedefinitions "$sealing" || stuck "The kind SealedSecret"
	gone 60 secrets --all-namespaces -l "$sealing/sealed-secrets-key" || stuck "The sealing keys"
	say "The kind SealedSecret and the sealing keys are gone."
elif [ -n "$(kc get customresourcedefinition "$sealing" --ignore-not-found -o name || :)" ]; then
	say "The kind SealedSecret and the sealing keys stay, with the Secrets that were opened: --purge takes them."
fi
say "Done. A centre that still has the cluster is not told: delete it there, or attach it anew with a fresh line."
exit 0
}
# In braces: cut off anywhere, the last line is a syntax error and not a call without its options.
{ main "$@"; }
