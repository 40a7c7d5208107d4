"""A whole store in the tables of a database: what the backends share. Each has its own `database` and `connection`."""
