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
  dry_run='' uninstall=''
  limit=30s # of one request to the Kubernetes cluster
  anchor=edgewright-anchor

#@common
  usage() {
    cat <<'HELP'
Attaches the Kubernetes cluster of kubectl's current context to an Edgewright centre.

  curl -sSL 'URL' | sh -                 attach
  curl -sSL 'URL' | sh -s -- OPTIONS     attach, with options

  --dry-run       check everything and say what would be done; change and register nothing
  --uninstall     take away what an earlier run has installed; what Flux has applied stays and runs on
  --context NAME  use this context of kubectl (or set EDGEWRIGHT_CONTEXT)
  --yes           do not ask (or set EDGEWRIGHT_YES=1); needed where there is no terminal
  --help          this text

Running it again is safe: it goes on where it stopped and keeps its secrets. HTTPS_PROXY, HTTP_PROXY and NO_PROXY
are used on the way to the centre, here and then by what runs on the cluster.

Exit codes: 0 done; 1 the centre refused; 2 wrong usage, or the question was not answered with yes;
3 a tool is missing, or the Kubernetes cluster does not answer or refused an object; 4 rights are missing
on the Kubernetes cluster; 5 its Kubernetes is too old; 6 it belongs to something else; 7 the centre cannot be
reached or cannot answer now: run the same line again; 8 a step that the operator added has failed; 9 the Flux
that is there does not fit.
HELP
  }

  while [ $# -gt 0 ]; do
    case $1 in
      --dry-run) dry_run=1 ;;
      --uninstall) uninstall=1 ;;
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

  for tool in kubectl curl base64 grep tr sed mktemp; do
    command -v "$tool" >/dev/null 2>&1 || fail 3 "'$tool' is needed and was not found on this machine; nothing was changed."
  done
  command -v od >/dev/null 2>&1 || command -v hexdump >/dev/null 2>&1 ||
    fail 3 "'od' or 'hexdump' is needed and neither was found on this machine; nothing was changed."

  settle
  unpack() {
    mkdir "$work/plain" "$work/flux" "$work/hooks" "$work/fetched"
#@unpack
  }
  unpack

  apply() { # reads manifests from standard input
    kc apply --server-side --force-conflicts --field-manager=edgewright-bootstrap -f - >/dev/null 2>"$work/error"
  }

  # --- The centre: everything secret goes through curl's standard input ---
  ask() { # FILE, curl's settings on standard input: leaves the answer in FILE and its HTTP status in status
    out=$1
    : >"$out"
    set --
    [ ! -f "$work/ca.pem" ] || set -- --cacert "$work/ca.pem"
    reached=yes
    curl --silent --show-error --connect-timeout 20 --max-time 120 --retry 2 --retry-max-time 60 \
      --proto '=http,https' --globoff --user-agent "edgewright-bootstrap/$version" "$@" \
      --output "$out" --write-out '%{http_code}' --config - >"$work/status" 2>"$work/error" || reached=no
    [ "$reached" = yes ] ||
      fail 7 "The centre ($url) cannot be reached; run the same line again. curl says: $(complaint)"
    status=$(cat "$work/status")
  }

  answer() { # KEY: the text of one flat key of the JSON answer, without control characters
    tr -s '\000-\037\177' ' ' <"$out" |
      sed -n -E 's/.*"'"$1"'"[[:space:]]*:[[:space:]]*"(([^"\\]|\\.)*)".*/\1/p' |
      sed -e 's/\\[nrt]/ /g' -e 's/\\\(["\\/]\)/\1/g'
  }

  judge() { # leaves in state: ok, refused, or nothing for an answer that is not the centre's
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

  if [ -n "$uninstall" ]; then
    ask "$work/uninstall.sh" <<EOF
url = "$url/v1/cluster/$cluster/bootstrap?format=uninstall&token=$token"
EOF
    case $status in 200 | 403) ;; *) judge && not_the_centre ;; esac
    grep -q '^# Edgewright' "$out" || not_the_centre
    unset token
    EDGEWRIGHT_CONTEXT=$context EDGEWRIGHT_YES=$yes sh "$out" ${dry_run:+--dry-run} || exit $?
    exit 0
  fi

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

  missing='' everything=yes
  may() { # VERB RESOURCE [-n NAMESPACE]
    kc auth can-i --quiet "$@" >/dev/null 2>&1 || missing="$missing${missing:+, }$1 $2"
  }
  may '*' '*' --all-namespaces # one question for an administrator, the single ones for all others
  if [ -n "$missing" ]; then
    missing='' everything=''
    for verb in get create patch; do may "$verb" clusterroles.rbac.authorization.k8s.io; done
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
    if [ -n "$agent_image" ]; then
      for kind in serviceaccounts roles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io deployments.apps; do
        may create "$kind" -n "$namespace"
        may patch "$kind" -n "$namespace"
      done
      for verb in create patch; do may "$verb" clusterrolebindings.rbac.authorization.k8s.io; done
    fi
  fi
  [ -z "$missing" ] ||
    fail 4 "kubectl's user may not do all that is needed (missing: $missing); use a context with administrator rights. Nothing was changed."

  uid=$(kc get namespace kube-system -o 'jsonpath={.metadata.uid}' 2>"$work/error") ||
    fail 3 "The identity of the cluster cannot be read; nothing was changed. kubectl says: $(complaint)"
  case $uid in
    '' | *[!0-9A-Za-z-]*) fail 3 "The identity of the cluster (the UID of kube-system) cannot be read; nothing was changed." ;;
  esac

  find_anchor

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
      *) belongs "$found_cluster" ;;
    esac
    found=${found##*|}
    case $found_generation in '' | *[!0-9]*) found_generation=0 ;; esac
    newer "$found_generation"
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
  [ -z "$elsewhere" ] || belongs "${elsewhere%% }"

  lookup flux-secrets
  flux_old=$found flux_old_generation=$found_generation
  lookup edgewright-agent
  agent_old=$found agent_old_generation=$found_generation

  # --- Flux: there and fit for this cluster's repository, ours, or absent ---
  flux_state=absent unfit=
  if [ -n "$flux_files" ]; then
    for need in gitrepositories.source/v1 kustomizations.kustomize/v1 helmreleases.helm/v2; do
      kind=${need%/*}.toolkit.fluxcd.io
      there=$(kc get customresourcedefinition "$kind" --ignore-not-found -o 'go-template={{with .metadata.labels}}{{with index . "edgewright.dev/cluster"}}{{.}}{{end}}{{end}}|{{range .spec.versions}}{{if .served}} {{.name}} {{end}}{{end}}' 2>"$work/error") ||
        fail 3 "What this cluster has of Flux cannot be read; nothing was changed. kubectl says: $(complaint)"
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
      fail 9 "The Flux that is on this cluster does not fit its repository ($unfit). Upgrade it, or take it away so that the centre's is installed. Nothing was changed."
  fi
  install_flux=
  [ -z "$flux_files" ] || [ -z "$flux_offer" ] || [ "$flux_state" = found ] || install_flux=yes
  [ -z "$install_flux" ] || [ -n "$everything" ] ||
    fail 4 "kubectl's user needs all rights on this cluster, as Flux has them; use a context with administrator rights. Nothing was changed."

  describe

  if [ -n "$dry_run" ]; then
    say "Dry run; nothing is changed or registered. This $here would be attached to $url as '$name' ($cluster)."
    say "It would make, if they are not there: the ClusterRole '$anchor', which owns the rest; the namespace '$namespace'; the Secrets 'flux-secrets' and 'edgewright-agent' in it."
    say "It would then register with the centre (the token is valid until $expires) and apply these files:"
    for file in "$work"/plain/* "$work"/flux/*; do
      [ ! -f "$file" ] || say "  ${file##*/}"
    done
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

  # --- What the centre has to give, before anything is changed ---
  fetch() { # WHAT: manifests of the centre, into the folder fetched
    ask "$work/fetched/$1.yaml" <<EOF
url = "$url/v1/cluster/$cluster/install/$1"
header = "Authorization: Bearer $token"
EOF
    judge
    case $state in
      ok) grep -q '^apiVersion:' "$out" || not_the_centre ;;
      refused) fail 1 "Refused by the centre: $detail $hint Nothing was changed." ;;
      *) not_the_centre ;;
    esac
  }
  [ -z "$install_flux" ] || fetch flux
  [ -z "$agent_image" ] || fetch agent

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

  put_anchor() { # create, or apply with its options
    kc "$@" -f - >/dev/null 2>"$work/error" <<EOF || fail 3 "The ClusterRole $anchor could not be written. kubectl says: $(complaint)"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: $anchor
  labels: {edgewright.dev/cluster: "$cluster", edgewright.dev/generation: "$generation"}
  annotations: {edgewright.dev/purpose: "Owns what Edgewright's bootstrap installed on this cluster; gives no rights."}
rules: []
EOF
  }

  owned() { # GENERATION: lines of metadata
    cat <<EOF
  labels: {edgewright.dev/cluster: "$cluster", edgewright.dev/generation: "$1", edgewright.dev/part-of: "bootstrap"}
  ownerReferences:
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: $anchor, uid: "$anchor_uid"}
EOF
  }

  stamp() { # manifests from standard input, as owned
    kc patch --local --type=merge -f - -o json --patch "{\"metadata\":{\"labels\":{\"edgewright.dev/cluster\":\"$cluster\",\"edgewright.dev/generation\":\"$generation\",\"edgewright.dev/part-of\":\"bootstrap\"},\"ownerReferences\":[{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRole\",\"name\":\"$anchor\",\"uid\":\"$anchor_uid\"}]}}"
  }

  make_namespace() { # NAME: one that is there already is left as it is; leaves yes or nothing in made_namespace
    made_namespace=
    [ -z "$(kc get namespace "$1" --ignore-not-found -o name 2>/dev/null)" ] || return 0
    {
      printf '%s\n' 'apiVersion: v1' 'kind: Namespace' 'metadata:' "  name: $1"
      owned "$generation"
    } | kc create -f - >/dev/null 2>"$work/error" || fail 3 "The namespace '$1' could not be made. kubectl says: $(complaint)"
    made_namespace=yes
    say "Made the namespace '$1'."
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
EOF
      owned "$3"
      cat <<EOF
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

  made_anchor=
  if [ -z "$anchor_uid" ]; then
    put_anchor create
    made_anchor=yes
    find_anchor
  fi
  make_namespace "$namespace"
  made_home=$made_namespace

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

  # --- Registration ---
  register() {
    write_secret flux-secrets "$flux" "$generation"
    write_secret edgewright-agent "$agent" "$generation"
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
    fresh ewf
    flux=$made
    fresh ewa
    agent=$made
    unset made
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
      undo_secret flux-secrets "$flux" "$flux_old" "$flux_old_generation"
      undo_secret edgewright-agent "$agent" "$agent_old" "$agent_old_generation"
      [ -z "$made_home" ] || kc delete namespace "$namespace" --ignore-not-found --wait=false >/dev/null 2>&1 ||
        say "The namespace '$namespace' could not be removed again."
      [ -z "$made_anchor" ] || kc delete clusterrole "$anchor" --ignore-not-found >/dev/null 2>&1 ||
        say "The ClusterRole '$anchor' could not be removed again."
      [ -n "$made_anchor" ] ||
        printf '%s\n' "edgewright: What an earlier run has installed stays; this line, or a fresh one, takes it away with --uninstall." >&2
      exit 1
      ;;
    *) not_the_centre ;;
  esac
  [ "${anchored:-$generation}" = "$generation" ] || put_anchor apply --server-side --force-conflicts --field-manager=edgewright-bootstrap

  # --- What proxies this machine uses, for what runs on the cluster; Kubernetes itself is reached without ---
  through=${HTTPS_PROXY:-${https_proxy:-}} plain_through=${HTTP_PROXY:-${http_proxy:-}}
  write_proxy() { # NAMESPACE
    [ -n "$through$plain_through" ] || return 0
    api=$(kc get service kubernetes -n default -o 'jsonpath={.spec.clusterIP}' 2>/dev/null) || api=
    direct=${NO_PROXY:-${no_proxy:-}}
    direct="$direct${direct:+,}.svc,.cluster.local.,.cluster.local,localhost,127.0.0.1${api:+,$api}"
    {
      printf '%s\n' 'apiVersion: v1' 'kind: Secret' 'metadata:' '  name: edgewright-proxy' "  namespace: $1"
      owned "$generation"
      echo "data:"
      [ -z "$through" ] || echo "  HTTPS_PROXY: $(encode "$through")"
      [ -z "$plain_through" ] || echo "  HTTP_PROXY: $(encode "$plain_through")"
      echo "  NO_PROXY: $(encode "$direct")"
    } | apply || fail 3 "The Secret $1/edgewright-proxy could not be written. kubectl says: $(complaint)"
  }
  write_proxy "$namespace"

  # --- The manifests: plain ones first, they may bring the kinds that the others need ---
  refused() { # FILE
    fail 3 "The file '${1##*/}' was not applied; put that right and run the same line again. kubectl says: $(complaint)"
  }

  apply_owned() { # FILE
    stamp <"$1" >"$work/stamped" 2>"$work/error" || refused "$1"
    apply <"$work/stamped" || refused "$1"
    say "Applied ${1##*/}."
  }

  apply_all() { # FOLDER
    for file in "$work/$1"/*; do
      [ -f "$file" ] || continue
      case $(kc get -f "$file" --ignore-not-found -o 'go-template={{define "one"}}{{with .metadata.labels}}{{if not (index . "edgewright.dev/part-of")}}foreign{{end}}{{else}}foreign{{end}}{{end}}{{if eq .kind "List"}}{{range .items}}{{template "one" .}}{{end}}{{else}}{{template "one" .}}{{end}}' 2>/dev/null) in
        *foreign*)
          apply <"$file" || refused "$file"
          say "Applied ${file##*/}; something in it was here before, so that it will not be taken away with Edgewright."
          ;;
        *) apply_owned "$file" ;;
      esac
    done
  }

  apply_all plain
  if [ -n "$install_flux" ]; then
    make_namespace "$flux_namespace"
    write_proxy "$flux_namespace"
    apply_owned "$work/fetched/flux.yaml"
    say "Flux $flux_offer is installed in namespace '$flux_namespace'."
  fi
  undriven=
  if [ -n "$flux_files" ]; then
    for kind in gitrepositories.source.toolkit.fluxcd.io kustomizations.kustomize.toolkit.fluxcd.io; do
      kc get customresourcedefinition "$kind" -o name >/dev/null 2>&1 &&
        kc wait --for=condition=Established --timeout=30s "customresourcedefinition/$kind" >/dev/null 2>&1 ||
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
    say "NOTICE: Flux is not installed on this cluster and its centre has none to give, so nothing pulls its repository yet: install Flux, or have it imported at the centre (edgewright flux import), then run the same line again (or a fresh one, once it has expired)."
    exit 0
  fi
  hook after
  say "Done: '$name' is attached to $url."
  exit 0
}
# In braces: cut off anywhere, the last line is a syntax error and not a call without its options.
{ main "$@"; }
