internal import KedgeEngine

extension ByteStoreConformance {
    /// However the bytes come, the blob has them, and what was written before is read as it was written.
    static let model = (1...6).map { (seed: UInt64) in
        Case(reopening: "bytes that come in any pieces make the file (seed \(seed))") { open in
            var random = SplitMix64(seed: seed)
            // Of whole chunks of real stores there is one: they take their time.
            let byteCount =
                seed == 1
                ? StagedUpload.chunkByteCount + 70_000 : Int.random(in: 1...200_000, using: &random)
            var walk = try await ByteWalk(seed: seed, byteCount: byteCount, open)
            try await walk.run()
        }
    }
}
