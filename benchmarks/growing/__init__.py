"""What `benchmarks.growth` measures: one module for each thing that grows."""
