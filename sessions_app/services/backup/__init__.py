"""The whole database in one verified archive, and back.

COPY reads and writes the rows, on the connection of this process, because all of a restore is one
transaction: the locks, the check that the database is empty, the rows, the comparison, the entry
in the audit log and the keys. pg_restore has a transaction of its own. pg_dump would save no code
here; the embedded server's knows no TLS, and servers of other versions need another one.
"""
