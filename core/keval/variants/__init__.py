"""An evaluation made of another one: translated from k-eval, narrowed by flags, widened by ablation."""
