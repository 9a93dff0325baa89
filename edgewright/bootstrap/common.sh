say() { printf '%s\n' "edgewright: $*"; }

fail() { # CODE SENTENCE
	code=$1
	shift
	printf '%s\n' "edgewright: $*" >&2
	exit "$code"
}

# A folder of its own, gone at the end; some shells keep here-documents in files: they stay inside.
settle() {
	work=
	trap '[ -z "$work" ] || rm -rf "$work"' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	work=$(mktemp -d "${TMPDIR:-/tmp}/edgewright.XXXXXX") || fail 3 "No temporary directory could be made; nothing was changed."
	TMPDIR=$work
	export TMPDIR
}

kc() {
	if [ -n "$context" ]; then
		kubectl --context "$context" --request-timeout=$limit "$@"
	else
		kubectl --request-timeout=$limit "$@"
	fi
}

# What kubectl said last, on one line, without anything that looks like a secret of ours.
complaint() {
	tr -s '\000-\037\177' ' ' <"$work/error" |
		sed -e 's/ew[fa]_[0-9a-f]*/***/g' -e 's/ZXd[hm]X[0-9A-Za-z+\/=]*/***/g' -e 's/ *$//'
}

broken() { # SENTENCE
	fail 3 "$1 kubectl says: $(complaint)"
}

belongs() { # CLUSTER [WHERE]: refuses an attachment to another one
	fail 6 "This Kubernetes cluster is attached to Edgewright already, as cluster $1${2:+ $2}; this script is for $cluster ($name). Is kubectl's context the right one? Nothing was changed."
}

newer() { # GENERATION
	[ "$1" -le "$generation" ] ||
		fail 6 "This Kubernetes cluster holds credentials that are newer than this script (generation $1, the script has $generation). Get a fresh line from Edgewright. Nothing was changed."
}

# One object that no namespace holds owns all that is installed here, and says whose this cluster is.
whose='go-template={{with .metadata.labels}}{{with index . "edgewright.dev/cluster"}}{{.}}{{end}}|{{with index . "edgewright.dev/generation"}}{{.}}{{end}}{{else}}|{{end}}|'
find_anchor() { # leaves its generation, UID and run in anchored, anchor_uid and other_run, empty if it is not there
	anchored=$(kc get clusterrole "$anchor" --ignore-not-found -o "$whose"'{{with .metadata.annotations}}{{with index . "edgewright.dev/run"}}{{.}}{{end}}{{end}}|{{.metadata.uid}}' 2>"$work/error") ||
		broken "The ClusterRole $anchor cannot be read."
	anchor_uid=${anchored##*|} other_run=
	case $anchored in
		'') return ;;
		"$cluster|"*) ;;
		'|'*) fail 6 "There is a ClusterRole '$anchor' that Edgewright did not make. Nothing was changed." ;;
		*) belongs "${anchored%%|*}" ;;
	esac
	other_run=${anchored%|*}
	other_run=${other_run##*|}
	anchored=${anchored#*|}
	anchored=${anchored%%|*}
	case $anchored in '' | *[!0-9]*) anchored=0 ;; esac
	newer "$anchored"
}

describe() { # leaves in here which cluster this is
	where=${context:-$(kubectl config current-context 2>/dev/null || :)}
	server=$(kc config view --minify -o 'jsonpath={.clusters[0].cluster.server}' 2>/dev/null || :)
	nodes=$(kc get nodes -o name 2>/dev/null | wc -l | tr -cd '0-9' || :)
	[ "$nodes" = 1 ] && nodes='1 node' || nodes="${nodes:-?} nodes"
	here="Kubernetes cluster (context ${where:-default}, server ${server:-unknown}, ${kubernetes:+$kubernetes, }$nodes)"
}

confirm() { # QUESTION WHAT
	[ -z "$yes" ] || return 0
	(: </dev/tty >/dev/tty) 2>/dev/null ||
		fail 2 "There is no terminal to ask on: add --yes (… | sh -s -- --yes) to $2. Nothing was changed."
	printf '%s' "$1 [y/N] " >/dev/tty
	read -r answer </dev/tty || answer=
	case $answer in
		y | Y | yes | Yes | YES) ;;
		*) fail 2 "Not done; nothing was changed." ;;
	esac
}
