// Users of the library write transports of their own, and read causes of failures, with one import.
@_exported public import KedgeTransport
