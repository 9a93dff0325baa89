"""Charts in the centre's own repository, ``shared/helm-charts``, and whether Helm values fit their schemas."""
