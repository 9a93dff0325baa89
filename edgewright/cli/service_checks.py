"""What `doctor` asks the services of an installation: database, token, Temporal, worker, gateway."""
