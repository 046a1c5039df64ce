"""The notebooks' kernels: started, filled again, watched, filtered."""
