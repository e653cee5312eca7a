"""The executor `ray`: runs and scores trials on the workers of a Ray cluster, or on all cores of one machine.

`executor` has its options, `cluster` connects to Ray and compares what is installed on its nodes, `crew` deals out
tasks, `worker` is the actor that does them, and `limiter` the one that holds the limits of the run.
"""
