#!/bin/sh
# Edgewright bootstrap: attaches one Kubernetes cluster to its centre. Read it, then run it:
#   curl -sSL 'URL' | sh -                  to look first: curl -sSL 'URL' | sh -s -- --dry-run
# It holds a registration token that expires: treat it like a password.
# All of it is one function, called on the last line: half a download does nothing.
main() {
  set +ax # neither a trace nor an exported variable may carry a secret
  unset token flux agent made found flux_old agent_old
  set -eu
  umask 077
  LC_ALL=C
  export LC_ALL
  exec </dev/null # standard input is this script: no child may read it

#@values
  context=${EDGEWRIGHT_CONTEXT:-}
  yes=${EDGEWRIGHT_YES:-}
  dry_run=

  say() { printf '%s\n' "edgewright: $*"; }

  fail() { # CODE SENTENCE
    code=$1
    shift
    printf '%s\n' "edgewright: $*" >&2
    exit "$code"
  }

  usage() {
    cat <<'HELP'
Attaches the Kubernetes cluster of kubectl's current context to an Edgewright centre.

  curl -sSL 'URL' | sh -                 attach
  curl -sSL 'URL' | sh -s -- OPTIONS     attach, with options

  --dry-run       check everything and say what would be done; change and register nothing
  --context NAME  use this context of kubectl (or set EDGEWRIGHT_CONTEXT)
  --yes           do not ask (or set EDGEWRIGHT_YES=1); needed where there is no terminal
  --help          this text

Running it again is safe: it goes on where it stopped and keeps its secrets.

Exit codes: 0 done; 1 the centre refused; 2 wrong usage, or the question was not answered with yes;
3 a tool is missing, or the Kubernetes cluster does not answer or refused an object; 4 rights are missing
on the Kubernetes cluster; 5 its Kubernetes is too old; 6 it belongs to something else; 7 the centre cannot be
reached or cannot answer now: run the same line again; 8 a step that the operator added has failed.
HELP
  }

  while [ $# -gt 0 ]; do
    case $1 in
      --dry-run) dry_run=1 ;;
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

  for tool in kubectl curl base64 tr sed mktemp; do
    command -v "$tool" >/dev/null 2>&1 || fail 3 "'$tool' is needed and was not found on this machine; nothing was changed."
  done
  command -v od >/dev/null 2>&1 || command -v hexdump >/dev/null 2>&1 ||
    fail 3 "'od' or 'hexdump' is needed and neither was found on this machine; nothing was changed."

  work=
  trap '[ -z "$work" ] || rm -rf "$work"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  work=$(mktemp -d "${TMPDIR:-/tmp}/edgewright.XXXXXX") || fail 3 "No temporary directory could be made; nothing was changed."
  TMPDIR=$work # some shells keep here-documents in files: they stay inside
  export TMPDIR

  unpack() {
    mkdir "$work/plain" "$work/flux" "$work/hooks"
#@unpack
  }
  unpack

  kc() {
    if [ -n "$context" ]; then
      kubectl --context "$context" --request-timeout=30s "$@"
    else
      kubectl --request-timeout=30s "$@"
    fi
  }

  # What kubectl said last, on one line, without anything that looks like a secret of ours.
  complaint() {
    tr -s '\000-\037\177' ' ' <"$work/error" |
      sed -e 's/ew[fa]_[0-9a-f]*/***/g' -e 's/ZXd[hm]X[0-9A-Za-z+\/=]*/***/g' -e 's/ *$//'
  }

  apply() { # reads manifests from standard input
    kc apply --server-side --force-conflicts --field-manager=edgewright-bootstrap -f - >/dev/null 2>"$work/error"
  }

  # --- The Kubernetes cluster: does it answer, is it new enough, may we, is it free? ---
  kc get --raw /version >"$work/version" 2>"$work/error" ||
    fail 3 "The Kubernetes cluster does not answer; nothing was changed. kubectl says: $(complaint)"
  kubernetes=$(tr -d ' \n\t' <"$work/version" | sed -n 's/.*"gitVersion":"\([0-9A-Za-z.+_-]*\)".*/\1/p')
  major=${kubernetes#v}
  minor=${major#*.}
  major=${major%%.*}
  minor=${minor%%[!0-9]*}
  case $major in '' | *[!0-9]*) fail 3 "The version of Kubernetes cannot be read; nothing was changed." ;; esac
  if [ "$major" -lt 1 ] || { [ "$major" -eq 1 ] && [ "${minor:-0}" -lt 25 ]; }; then
    fail 5 "This cluster runs Kubernetes $kubernetes; Edgewright needs 1.25 or newer. Nothing was changed."
  fi

  missing=
  may() { # VERB RESOURCE [-n NAMESPACE]
    kc auth can-i --quiet "$@" >/dev/null 2>&1 || missing="$missing${missing:+, }$1 $2"
  }
  may '*' '*' --all-namespaces # one question for an administrator, the single ones for all others
  if [ -n "$missing" ]; then
    missing=
    may get namespaces
    may create namespaces
    for verb in get create patch delete; do may "$verb" secrets -n "$namespace"; done
    may get customresourcedefinitions.apiextensions.k8s.io
    if [ -n "$flux_files" ]; then
      for kind in gitrepositories.source.toolkit.fluxcd.io kustomizations.kustomize.toolkit.fluxcd.io; do
        may create "$kind" -n "$namespace"
        may patch "$kind" -n "$namespace"
      done
    fi
  fi
  [ -z "$missing" ] ||
    fail 4 "kubectl's user may not do all that is needed (missing: $missing); use a context with administrator rights. Nothing was changed."

  uid=$(kc get namespace kube-system -o 'jsonpath={.metadata.uid}' 2>"$work/error") ||
    fail 3 "The identity of the cluster cannot be read; nothing was changed. kubectl says: $(complaint)"
  case $uid in
    '' | *[!0-9A-Za-z-]*) fail 3 "The identity of the cluster (the UID of kube-system) cannot be read; nothing was changed." ;;
  esac

  # lookup SECRET: leaves its label values and password in found_cluster, found_generation and found;
  # all empty if there is no such Secret.
  lookup() {
    found=$(kc get secret "$1" -n "$namespace" --ignore-not-found -o 'go-template={{with .metadata.labels}}{{with index . "edgewright.dev/cluster"}}{{.}}{{end}}|{{with index . "edgewright.dev/generation"}}{{.}}{{end}}{{else}}|{{end}}|{{with .data}}{{with index . "password"}}{{base64decode .}}{{end}}{{end}}' 2>"$work/error") ||
      fail 3 "The Secret $namespace/$1 cannot be read; nothing was changed. kubectl says: $(complaint)"
    found_cluster=${found%%|*}
    found_generation=${found#*|}
    found_generation=${found_generation%%|*}
    case $found in
      '') ;;
      "$cluster|"*) ;;
      '|'*) fail 6 "Namespace '$namespace' has a Secret '$1' that Edgewright did not make: something else seems to drive this cluster. Nothing was changed." ;;
      *) fail 6 "This Kubernetes cluster is attached to Edgewright already, as cluster $found_cluster; this script is for $cluster ($name). Is kubectl's context the right one? Nothing was changed." ;;
    esac
    found=${found##*|}
    case $found_generation in '' | *[!0-9]*) found_generation=0 ;; esac
    [ "$found_generation" -le "$generation" ] ||
      fail 6 "This Kubernetes cluster holds credentials that are newer than this script (generation $found_generation, the script has $generation). Get a fresh line from Edgewright. Nothing was changed."
  }

  is_secret() { # PREFIX VALUE: is it what fresh makes?
    case $2 in "${1}_"*) ;; *) return 1 ;; esac
    hex=${2#"${1}_"}
    case $hex in *[!0-9a-f]*) return 1 ;; esac
    [ ${#hex} -eq 64 ]
  }

  fresh() { # PREFIX: leaves a new secret of 256 bits in made
    if command -v od >/dev/null 2>&1; then
      made=${1}_$(od -An -v -tx1 -N32 /dev/urandom | tr -cd '0-9a-f')
    else
      made=${1}_$(hexdump -v -n 32 -e '1/1 "%02x"' /dev/urandom | tr -cd '0-9a-f')
    fi
    is_secret "$1" "$made" || fail 3 "No random secret could be made from /dev/urandom."
  }

  # Labels tell of an attachment in another namespace too, where we may look.
  elsewhere=$(kc get secrets --all-namespaces --field-selector metadata.name=edgewright-agent \
    -l "edgewright.dev/cluster,edgewright.dev/cluster!=$cluster" \
    -o 'go-template={{range .items}}{{index .metadata.labels "edgewright.dev/cluster"}} in namespace {{.metadata.namespace}} {{end}}' 2>/dev/null) || elsewhere=
  [ -z "$elsewhere" ] ||
    fail 6 "This Kubernetes cluster is attached to Edgewright already, as cluster ${elsewhere%% }; this script is for $cluster ($name). Is kubectl's context the right one? Nothing was changed."

  lookup flux-secrets
  flux_old=$found flux_old_generation=$found_generation
  lookup edgewright-agent
  agent_old=$found agent_old_generation=$found_generation

  where=${context:-$(kubectl config current-context 2>/dev/null || :)}
  server=$(kc config view --minify -o 'jsonpath={.clusters[0].cluster.server}' 2>/dev/null || :)
  nodes=$(kc get nodes -o name 2>/dev/null | wc -l | tr -cd '0-9' || :)
  [ "$nodes" = 1 ] && nodes='1 node' || nodes="${nodes:-?} nodes"
  here="Kubernetes cluster (context ${where:-default}, server ${server:-unknown}, $kubernetes, $nodes)"

  if [ -n "$dry_run" ]; then
    say "Dry run; nothing is changed or registered. This $here would be attached to $url as '$name' ($cluster)."
    say "It would make, if they are not there: the namespace '$namespace', the Secrets 'flux-secrets' and 'edgewright-agent' in it."
    say "It would then register with the centre (the token is valid until $expires) and apply these files:"
    for file in "$work"/plain/* "$work"/flux/*; do
      [ ! -f "$file" ] || say "  ${file##*/}"
    done
    for file in "$work"/hooks/*; do
      [ ! -f "$file" ] || say "It would run the operator's step '${file##*/}'."
    done
    exit 0
  fi

  if [ -z "$yes" ]; then
    (: </dev/tty >/dev/tty) 2>/dev/null ||
      fail 2 "There is no terminal to ask on: add --yes (… | sh -s -- --yes) to attach this $here as '$name'. Nothing was changed."
    printf '%s' "Attach this $here to $url as '$name'? [y/N] " >/dev/tty
    read -r answer </dev/tty || answer=
    case $answer in
      y | Y | yes | Yes | YES) ;;
      *) fail 2 "Not attached; nothing was changed." ;;
    esac
  fi

  say "Attaching this $here to $url as '$name' ($cluster)."

  hook() { # NAME: a step of the operator, in a shell of its own that knows neither token nor secrets
    [ -f "$work/hooks/$1" ] || return 0
    say "Running the operator's step '$1'."
    # shellcheck disable=SC2016 # the inner shell expands it
    EDGEWRIGHT_CLUSTER=$cluster EDGEWRIGHT_NAME=$name EDGEWRIGHT_NAMESPACE=$namespace \
      EDGEWRIGHT_URL=$url EDGEWRIGHT_CONTEXT=$context sh -eu -c '
        kubectl() { command kubectl ${EDGEWRIGHT_CONTEXT:+--context "$EDGEWRIGHT_CONTEXT"} "$@"; }
        . "$1"' "edgewright-$1" "$work/hooks/$1" ||
      fail 8 "The operator's step '$1' has failed. Run the same line again once its cause is gone."
  }

  # --- The secrets: made here, written here first, then registered; a repeat finds and keeps them ---
  encode() { # VALUE: base64 on one line; a here-document, because an argument would be visible to others
    tr -d '\n' <<EOF | base64 | tr -d '\n'
$1
EOF
  }

  write_secret() { # NAME PASSWORD GENERATION
    {
      cat <<EOF
apiVersion: v1
kind: Secret
type: Opaque
metadata:
  name: $1
  namespace: $namespace
  labels: {edgewright.dev/cluster: "$cluster", edgewright.dev/generation: "$3"}
  annotations: {edgewright.dev/made-by: "bootstrap $version"}
data:
  username: $(encode "$cluster")
  password: $(encode "$2")
EOF
      if [ -f "$work/ca.pem" ]; then
        echo "  ca.crt: $(base64 <"$work/ca.pem" | tr -d '\n')"
      fi
      if [ "$1" = edgewright-agent ]; then
        cat <<EOF
  url: $(encode "$url")
  uuid: $(encode "$cluster")
  generation: $(encode "$3")
EOF
      fi
    } | apply || fail 3 "The Secret $namespace/$1 could not be written. kubectl says: $(complaint)"
  }

  undo_secret() { # NAME CURRENT OLD OLD_GENERATION: as it was before this run
    if [ "$2" = "$3" ]; then
      return 0
    elif [ -n "$3" ]; then
      write_secret "$1" "$3" "$4"
    else
      kc delete secret "$1" -n "$namespace" --ignore-not-found >/dev/null 2>&1 ||
        say "The Secret $namespace/$1 could not be removed again."
    fi
  }

  hook before

  if [ -z "$(kc get namespace "$namespace" --ignore-not-found -o name 2>/dev/null)" ]; then
    kc create -f - >/dev/null 2>"$work/error" <<EOF || fail 3 "The namespace '$namespace' could not be made. kubectl says: $(complaint)"
apiVersion: v1
kind: Namespace
metadata:
  name: $namespace
  labels: {edgewright.dev/cluster: "$cluster"}
EOF
    say "Made the namespace '$namespace'."
  fi

  flux=$flux_old agent=$agent_old
  if [ "$flux_old_generation" != "$generation" ] || ! is_secret ewf "$flux"; then
    fresh ewf
    flux=$made
  fi
  if [ "$agent_old_generation" != "$generation" ] || ! is_secret ewa "$agent"; then
    fresh ewa
    agent=$made
  fi
  unset made found
  if [ -n "$flux_old$agent_old" ] && [ "$flux" != "$flux_old" ] && [ "$agent" != "$agent_old" ]; then
    say "Replacing the credentials of an earlier generation of this cluster."
  fi
  write_secret flux-secrets "$flux" "$generation"
  write_secret edgewright-agent "$agent" "$generation"
  say "The Secrets 'flux-secrets' and 'edgewright-agent' are in namespace '$namespace'."

  # --- Registration: everything secret goes through curl's standard input ---
  : >"$work/answer"
  set --
  [ ! -f "$work/ca.pem" ] || set -- --cacert "$work/ca.pem"
  reached=yes
  curl --silent --show-error --connect-timeout 20 --max-time 60 --retry 2 --retry-max-time 60 \
    --proto '=http,https' --globoff "$@" --output "$work/answer" --write-out '%{http_code}' --config - \
    >"$work/status" 2>"$work/error" <<EOF || reached=no
url = "$url/v1/register"
user-agent = "edgewright-bootstrap/$version"
header = "Authorization: Bearer $token"
header = "Content-Type: application/json"
data = "{\"kube_system_uid\":\"$uid\",\"kubernetes_version\":\"$kubernetes\",\"flux_secret\":\"$flux\",\"agent_secret\":\"$agent\"}"
EOF
  [ "$reached" = yes ] ||
    fail 7 "The centre ($url) cannot be reached; run the same line again. curl says: $(complaint)"
  status=$(cat "$work/status")

  answer() { # KEY: the text of one flat key of the JSON answer, without control characters
    tr -s '\000-\037\177' ' ' <"$work/answer" |
      sed -n -E 's/.*"'"$1"'"[[:space:]]*:[[:space:]]*"(([^"\\]|\\.)*)".*/\1/p' |
      sed -e 's/\\[nrt]/ /g' -e 's/\\\(["\\/]\)/\1/g'
  }

  detail=$(answer detail)
  hint=$(answer hint)
  case $status in
    2??) state=$(answer state) ;;
    429 | 5??) fail 7 "The centre cannot answer now (HTTP $status); run the same line again later. ${detail:+It says: $detail} $hint" ;;
    4??) state=${detail:+refused} ;;
    *) state= ;;
  esac
  case $state in
    accepted) say "Registered; the centre has accepted this cluster as '$name'." ;;
    pending)
      say "Registered; an operator must accept this cluster now. Its short code is $(answer short_code | tr -cd '0-9A-Za-z-')."
      ;;
    refused)
      printf '%s\n' "edgewright: Refused by the centre: $detail" >&2
      [ -z "$hint" ] || printf '%s\n' "edgewright: $hint" >&2
      undo_secret flux-secrets "$flux" "$flux_old" "$flux_old_generation"
      undo_secret edgewright-agent "$agent" "$agent_old" "$agent_old_generation"
      exit 1
      ;;
    *) fail 7 "What answers at $url is not an Edgewright centre (HTTP $status). Is a proxy in between? Run the same line again once that is put right." ;;
  esac

  # --- The manifests: plain ones first, they may bring the kinds that the others need ---
  apply_all() { # FOLDER
    for file in "$work/$1"/*; do
      [ -f "$file" ] || continue
      apply <"$file" || fail 3 "The file '${file##*/}' was not applied; put that right and run the same line again. kubectl says: $(complaint)"
      say "Applied ${file##*/}."
    done
  }

  apply_all plain
  if [ -n "$flux_files" ]; then
    installed=yes
    for kind in gitrepositories.source.toolkit.fluxcd.io kustomizations.kustomize.toolkit.fluxcd.io; do
      kc get customresourcedefinition "$kind" -o name >/dev/null 2>&1 &&
        kc wait --for=condition=Established --timeout=30s "customresourcedefinition/$kind" >/dev/null 2>&1 ||
        installed=
    done
    if [ -z "$installed" ]; then
      say "NOTICE: Flux is not installed on this cluster, so nothing pulls its repository yet: install Flux, then run the same line again (or a fresh one, once it has expired)."
      exit 0
    fi
    apply_all flux
  fi
  hook after
  say "Done: '$name' is attached to $url."
  exit 0
}
# In braces: cut off anywhere, the last line is a syntax error and not a call without its options.
{ main "$@"; }
