"""Finding a job by its id, name, user or path: configured roots, Slurm, Kubernetes, object stores."""
