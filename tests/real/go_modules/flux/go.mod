module edgewright.test/flux

go 1.26.0

require (
	github.com/fluxcd/kustomize-controller v1.9.5
	github.com/fluxcd/source-controller v1.9.1
	sigs.k8s.io/kwok v0.8.0
)

replace (
	github.com/fluxcd/pkg/helmtestserver => ./nothing
	github.com/opencontainers/go-digest => github.com/opencontainers/go-digest v1.0.1-0.20220411205349-bde1400a84be
	sigs.k8s.io/kustomize/api => sigs.k8s.io/kustomize/api v0.21.1
	sigs.k8s.io/kustomize/kyaml => sigs.k8s.io/kustomize/kyaml v0.21.1
	gopkg.in/yaml.v3 => gopkg.in/yaml.v3 v3.0.1
)
