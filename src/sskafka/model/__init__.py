"""Types that every layer uses: `ids`, `errors`, `settings` (from `setting`, `setting_sources` and `settings_table`),
`counters`, codes of ACLs (`acl`), and `values`, the decorators of value classes."""
