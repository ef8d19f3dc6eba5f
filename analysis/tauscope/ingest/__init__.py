"""From the bytes of a log to rows; the same path for import and for live recording."""
