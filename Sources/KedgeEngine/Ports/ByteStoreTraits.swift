/// The properties of a byte store on which the engine's work depends. They never change.
package struct ByteStoreTraits: Hashable, Sendable {
    /// Whether the bytes of saved chunks can be read only after ``ByteStore/assemble(_:)``, except
    /// those that this node has itself. A finalize may then take longer than its request.
    package var needsAssembly: Bool
    /// Whether ``StagedFile/chunks`` must be given. The list can be long.
    package var needsChunkList: Bool
    /// Whether this node needs local space for a whole file before it is finalized. Otherwise it
    /// needs space for bytes in transit: at most one chunk.
    package var stagingNeedsFullSize: Bool
    /// Whether a partial lies where its chunk goes, so that writing the chunk overwrites it.
    package var overwritesPartials: Bool
    /// Whether a damaged chunk can be replaced while the other chunks stay.
    package var replacesSingleChunks: Bool
    /// Whether bytes that are saved after their session has ended stay until the garbage names
    /// them. Otherwise the recovery finds them.
    package var leavesLateBytes: Bool
    /// Whether checkpoints of the whole-file hash are saved while bytes are read back, so that
    /// another node can continue.
    package var sharesCheckpoints: Bool
    /// Whether removing bytes takes so long that no request waits for it.
    package var removesInBackground: Bool
    /// Maximum number of items of garbage that a node claims at once.
    package var garbageBatchSize: Int

    package init(
        needsAssembly: Bool, needsChunkList: Bool, stagingNeedsFullSize: Bool,
        overwritesPartials: Bool, replacesSingleChunks: Bool, leavesLateBytes: Bool,
        sharesCheckpoints: Bool, removesInBackground: Bool, garbageBatchSize: Int
    ) {
        self.needsAssembly = needsAssembly
        self.needsChunkList = needsChunkList
        self.stagingNeedsFullSize = stagingNeedsFullSize
        self.overwritesPartials = overwritesPartials
        self.replacesSingleChunks = replacesSingleChunks
        self.leavesLateBytes = leavesLateBytes
        self.sharesCheckpoints = sharesCheckpoints
        self.removesInBackground = removesInBackground
        self.garbageBatchSize = garbageBatchSize
    }
}
