"""Words that every layer uses: `ids`, `errors`, `settings` (from `setting`, `setting_sources` and `settings_table`),
`counters`, the `clock` as an argument, and `values`, by which classes of plain data are made."""
