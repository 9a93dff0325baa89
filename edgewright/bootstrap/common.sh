unchanged=' Nothing was changed.' # until something was
say() { printf '%s\n' "edgewright: $*"; }

fail() { #- CODE SENTENCE
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
	trap 'exit 141' PIPE #- some shells would end without the first of these
	work=$(mktemp -d "${TMPDIR:-/tmp}/edgewright.XXXXXX") || fail 3 "No temporary directory could be made.$unchanged"
	TMPDIR=$work
	export TMPDIR
}

kc() { #- what it says on its way out is kept
	kubectl ${context:+--context "$context"} --request-timeout=$limit "$@" 2>"$work/error"
}

# What kubectl said last, on one line, without anything that looks like a secret of ours.
complaint() {
	tr -s '\000-\037\177' ' ' <"$work/error" |
		sed -e 's/ew[fa]_[0-9a-f]*/***/g' -e 's/ZXd[hm]X[0-9A-Za-z+\/=]*/***/g' -e 's/ *$//'
}

broken() { #- SENTENCE
	fail 3 "$1 kubectl says: $(complaint)"
}

belongs() { #- CLUSTER [WHERE]: refuses an attachment to another one
	fail 6 "This Kubernetes cluster is attached to Edgewright already, as cluster $1${2:+ $2}; this script is for $cluster ($name). Is kubectl's context the right one? To take Edgewright off it: edgewright cluster uninstall-script.$unchanged"
}

newer() { #- GENERATION
	[ "$1" -le "$generation" ] ||
		fail 6 "This Kubernetes cluster holds credentials that are newer than this script (generation $1, the script has $generation). Get a fresh line from Edgewright.$unchanged"
}

label='{.metadata.labels.edgewright\.dev/'
# One object that no namespace holds owns all that is installed here, and says whose this cluster is.
number() { #- TEXT: 0 if it is none
	case $1 in '' | *[!0-9]*) echo 0 ;; *) echo "$1" ;; esac
}
find_anchor() { #- leaves anchored (its generation), other_run, anchor_version and anchor_uid
	there=$(kc get clusterrole "$anchor" --ignore-not-found -o "jsonpath=${label}cluster}|${label}generation}|{.metadata.annotations.edgewright\.dev/run}|{.metadata.resourceVersion}|{.metadata.uid}") ||
		broken "The ClusterRole $anchor cannot be read.$unchanged"
	IFS='|' read -r owner anchored other_run anchor_version anchor_uid <<EOF
$there
EOF
	case $there in
		'') return ;; #- all of these are empty
		'|'*) fail 6 "There is a ClusterRole '$anchor' that Edgewright did not make.$unchanged" ;;
		"$cluster|"*) ;;
		*) belongs "$owner" ;;
	esac
	anchored=$(number "$anchored")
	newer "$anchored"
}

remove() { #- PATH VERSION: if it still has that version
	kc delete --raw "$1" -f - >/dev/null <<EOF
{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"$2"}}
EOF
}

has() { #- PATTERN: kubectl has just said that
	grep -qE "$1" "$work/error"
}

describe() { #- leaves in here which cluster this is
	where=${context:-$(kubectl config current-context 2>/dev/null || :)}
	server=$(kc config view --minify -o 'jsonpath={.clusters[0].cluster.server}' || :)
	if nodes=$(kc get nodes -o name); then
		nodes=$(printf '%s\n' "$nodes" | grep -c . || :)
		[ "$nodes" = 1 ] && nodes='1 node' || nodes="$nodes nodes"
	else
		nodes='number of nodes unknown'
	fi
	here="Kubernetes cluster (context ${where:-default}, server ${server:-unknown}, ${kubernetes:+$kubernetes, }$nodes)"
}

confirm() { #- QUESTION WHAT
	[ -z "$yes" ] || return 0
	(: </dev/tty >/dev/tty) 2>/dev/null ||
		fail 2 "There is no terminal to ask on: add --yes (… | sh -s -- --yes) to $2.$unchanged"
	printf '%s' "$1 [y/N] " >/dev/tty
	read -r answer </dev/tty || answer=
	case $answer in
		y | Y | yes | Yes | YES) ;;
		*) fail 2 "Not done.$unchanged" ;;
	esac
}
