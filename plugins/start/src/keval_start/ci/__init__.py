"""`keval ci`: keval in the jobs of pull requests, on GitHub and GitLab."""
