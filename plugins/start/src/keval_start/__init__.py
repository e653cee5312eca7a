"""The first steps with keval: `keval init` writes an evaluation, `keval new` a plugin package."""
