"""``make edge-demo``: a centre and a Kubernetes cluster that is attached to it, left running to play with."""
