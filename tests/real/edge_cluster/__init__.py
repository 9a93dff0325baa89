"""A real Kubernetes cluster of one test session: API server, etcd and controllers as processes of this machine."""
