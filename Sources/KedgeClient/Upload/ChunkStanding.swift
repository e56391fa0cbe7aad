/// State of a chunk on the server.
enum ChunkStanding: Sendable, Equatable {
    case received
    /// Number of bytes that the server has from the start of the chunk; zero for none.
    case partial(Int64)
}
