internal import KedgeEngine

extension ByteStoreConformance {
    /// A blob has the bytes, and each read returns what was written, whatever pieces the bytes come
    /// in.
    static let model = (1...6).map { (seed: UInt64) in
        Case(reopening: "bytes that come in any pieces make the file (seed \(seed))") { open in
            var random = SplitMix64(seed: seed)
            // Real stores take time for a full chunk, so a walk has one of them.
            let byteCount =
                seed == 1
                ? StagedUpload.chunkByteCount + 70_000 : Int.random(in: 1...200_000, using: &random)
            var walk = try await ByteWalk(seed: seed, byteCount: byteCount, open)
            try await walk.run()
        }
    }
}
