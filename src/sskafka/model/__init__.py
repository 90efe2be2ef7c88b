"""Words that every layer uses: `ids`, `errors`, `settings` (from `setting`, `setting_sources` and `settings_table`),
`counters`, codes of ACLs (`acl`), and `values`, by which classes of plain data are made."""
