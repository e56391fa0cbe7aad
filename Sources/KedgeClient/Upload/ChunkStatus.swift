/// State of a chunk on the server.
package enum ChunkStatus: Sendable, Equatable {
    /// The server has the whole chunk, or needs no more chunks.
    case received
    /// Number of bytes that the server has from the start of the chunk; zero for none.
    case partial(Int64)
}
