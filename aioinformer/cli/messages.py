"""Messages that both the entry point and the commands print."""

LIST_UNFINISHED = "interrupted before the whole list was printed"
NO_REPORT = "interrupted before there was a report"
MIGRATION_UNFINISHED = "interrupted: run it again, and it continues after the last object that it has saved"
