"""The notebooks' kernels: started, rebuilt, watched, filtered."""
