"""`keval new`: writes a plugin package that installs, passes its own tests and can be used at once.

`command` is the flow, and `package` has the names that follow from what the user said, and the files of `templates/`.
"""
