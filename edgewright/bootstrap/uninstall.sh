#!/bin/sh
# Edgewright: takes away from one Kubernetes cluster what its bootstrap line has installed there, and nothing else.
# It holds no secret and needs no centre: it can be kept. Read it, then run it: sh uninstall.sh [--dry-run]
# All of it is one function, called on the last line: half a download does nothing.
main() {
set -eu
umask 077
LC_ALL=C
export LC_ALL
exec </dev/null

#@values
context=${EDGEWRIGHT_CONTEXT:-}
yes=${EDGEWRIGHT_YES:-}
dry_run=''
limit=30s # of one request to the Kubernetes cluster
anchor=edgewright-anchor
ours="edgewright.dev/cluster=$cluster,edgewright.dev/part-of=bootstrap"

#@common
while [ $# -gt 0 ]; do
	case $1 in
		--dry-run) dry_run=1 ;;
		--yes) yes=1 ;;
		--context)
			[ $# -gt 1 ] || fail 2 "--context needs the name of a kubectl context."
			context=$2
			shift
			;;
		*) fail 2 "Unknown option '$1'. There are --dry-run, --yes and --context NAME." ;;
	esac
	shift
done
case $yes in 0 | n | no | false) yes= ;; esac
for tool in kubectl grep mktemp sed tr wc; do
	command -v "$tool" >/dev/null 2>&1 || fail 3 "'$tool' is needed and was not found on this machine.$unchanged"
done
settle

kc get --raw /version >/dev/null ||
	broken "The Kubernetes cluster does not answer.$unchanged"
find_anchor
if [ -z "$anchor_uid" ]; then
	say "Nothing was installed here for '$name' ($cluster), or all of it is gone."
	exit 0
fi
kc auth can-i --quiet '*' '*' --all-namespaces >/dev/null ||
	fail 4 "kubectl's user needs all rights on this cluster; use a context with administrator rights.$unchanged"
describe

kinds() { # OPTIONS: the kinds that can be listed and deleted, a line each
	kc api-resources --verbs=list,delete -o name "$@" | sed -e '/^events/d' -e '/^namespaces$/d' || :
}
listed() { # KIND[,KIND…] OPTIONS: namespace and name of each object, a line each ('-' is no namespace)
	kc get "$@" -o 'go-template={{range .items}}{{with .metadata.namespace}}{{.}}{{else}}-{{end}} {{.kind}} {{.metadata.name}}{{"\n"}}{{end}}' ||
		broken "What is on the cluster cannot be listed."
}
gone() { # SECONDS, arguments of kubectl delete: waits until it is
	seconds=$1
	shift
	limit=0
	kc delete "$@" --ignore-not-found --wait --timeout="${seconds}s" >/dev/null || {
		limit=30s
		return 1
	}
	limit=30s
}
change() { # NAMESPACE KIND NAME PATCH: nothing if it has gone meanwhile
	kc patch "$2" "$3" -n "$1" --type=merge --patch "$4" >/dev/null || has 'NotFound|resource type' ||
		broken "$2 $1/$3 could not be changed; run this again."
}
meanwhile() {
	fail 3 "The bootstrap line was run meanwhile. Let it end; then run this again if Edgewright is to go."
}
stuck() { # WHAT
	broken "$1 did not go; run this again."
}

all=$(kinds | tr '\n' ',')
all=${all%,}
flux=$(kinds --namespaced=true | sed -n '/\.toolkit\.fluxcd\.io$/p')
if [ -n "$dry_run" ]; then
	say "Dry run; nothing is changed. From this $here would go:"
	listed "$all,namespaces" --all-namespaces -l "$ours" | sed 's/^/edgewright:   /'
	say "  and the ClusterRole $anchor. What Flux has applied would stay and run on."
	exit 0
fi
confirm "Take Edgewright ('$name') away from this $here?" "take Edgewright ('$name') away from this $here"
say "Taking Edgewright ('$name', $cluster) away from this $here. What Flux has applied stays and runs on."

# From here on a run of the line waits; one that began before, and is taken to have ended, sees this in time.
kc annotate clusterrole "$anchor" --overwrite edgewright.dev/run=uninstall >/dev/null ||
	broken "The ClusterRole $anchor could not be marked.$unchanged"
unchanged=
find_anchor
[ "$other_run" = uninstall ] || meanwhile

# A suspended object of Flux takes nothing along when it goes.
for kind in $flux; do
	case $kind in kustomizations.* | helmreleases.*) ;; *) continue ;; esac
	listed "$kind" --all-namespaces -l "edgewright.dev/cluster=$cluster" >"$work/list"
	while read -r where _ object; do
		change "$where" "$kind" "$object" '{"spec":{"suspend":true}}'
	done <"$work/list"
done

# Controllers first: they would bring back what goes, or wait for one another.
gone 120 deployments.apps --all-namespaces -l "$ours" --cascade=foreground || stuck "The controllers"
say "The controllers are gone."

# Nobody is left to see to the finalizers of our Flux; somebody else's Flux sees to those of our objects itself.
owned=$(kc get customresourcedefinitions -l "$ours" -o 'go-template={{range .items}}{{.metadata.name}} {{end}}') ||
	broken "What is on the cluster cannot be listed."
release() { # KIND OPTIONS: takes the finalizers away
	kind=$1
	shift
	listed "$kind" --all-namespaces "$@" >"$work/list"
	while read -r where _ object; do
		change "$where" "$kind" "$object" '{"metadata":{"finalizers":null}}'
	done <"$work/list"
}
for kind in $flux; do
	case " $owned " in
		*" $kind "*) release "$kind" ;;
		*)
			if ! gone 60 "$kind" --all-namespaces -l "edgewright.dev/cluster=$cluster"; then
				release "$kind" -l "edgewright.dev/cluster=$cluster"
				gone 60 "$kind" --all-namespaces -l "edgewright.dev/cluster=$cluster" || stuck "$kind"
			fi
			;;
	esac
done
if [ -n "$owned" ]; then
	gone 120 customresourcedefinitions -l "$ours" || stuck "Flux's kinds"
	say "Flux and its kinds are gone."
	all=$(kinds | tr '\n' ',')
	all=${all%,}
fi
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
		kc patch namespace "$space" --type=merge --patch '{"metadata":{"ownerReferences":null,"labels":{"edgewright.dev/cluster":null,"edgewright.dev/generation":null,"edgewright.dev/part-of":null}}}' >/dev/null ||
			stuck "Our mark on the namespace '$space'"
		say "The namespace '$space' stays, because of what is in it: $left"
	fi
done <"$work/namespaces"

remove_anchor "$anchor_version" || {
	! has 'modified|Conflict' || meanwhile
	has NotFound || stuck "The ClusterRole $anchor"
}
say "Done. At the centre, '$name' is still there: delete it, or attach it anew with a fresh line."
exit 0
}
# In braces: cut off anywhere, the last line is a syntax error and not a call without its options.
{ main "$@"; }
