import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

/// Scrubs of bytes at rest in a bucket, on nodes that share it.
@Suite(.timeLimit(.minutes(2))) struct FleetScrubTests {
    private let content = sampleBytes(2500)

    private func damage(_ file: FileRecord, in fixture: FleetEnvironment) async throws {
        try await fixture.bucket.damage(try #require(file.location), at: 1200)
    }

    @Test func `a good upload takes the place of a damaged object`() async throws {
        try await withNodes(2) { fixture, nodes in
            let first = try await nodes[0].file(content)
            try await damage(first, in: fixture)
            let second = try await nodes[1].file(content)
            #expect(second.location != first.location)
            for node in nodes {
                let now = try await node.engine.file(first.id, owner: first.owner)
                #expect(try await node.content(of: now) == content)
                try await node.scrubAll()
            }
            // Addresses of the earlier object may still be in use.
            #expect(try await fixture.leftovers().count == 2)
        }
    }

    @Test func `a superseded object stays while a reader has it open`() async throws {
        func shorten(_ configuration: inout EngineConfiguration) {
            configuration.supersededLifetime = .milliseconds(1500)
        }
        try await withNodes(2, shorten) { fixture, nodes in
            let first = try await nodes[0].file(content)
            let open = try await nodes[0].engine.openFile(first)
            _ = try await nodes[1].file(content)
            for _ in 0..<6 {
                for node in nodes {
                    try await node.scrubAll()
                    try await node.engine.sweep()
                }
                try await Task.sleep(for: .milliseconds(400))
            }
            #expect(try await fixture.leftovers().count == 2)
            let bytes = try await nodes[0].engine.read(open, at: 0, upTo: 2500) { Array($0) }
            #expect(bytes == Array(content.prefix(bytes.count)))
            await open.reader.close()
        }
    }

    @Test func `an earlier object comes back when the later one is damaged`() async throws {
        try await withNodes(2) { fixture, nodes in
            let first = try await nodes[0].file(content)
            let second = try await nodes[1].file(content)
            try await damage(second, in: fixture)
            for node in nodes { try await node.scrubAll() }
            for file in [first, second] {
                let now = try await nodes[1].engine.file(file.id, owner: file.owner)
                #expect(now.location == first.location)
                #expect(try await nodes[1].content(of: now) == content)
            }
        }
    }

    @Test func `nodes share the scrub, and each blob is read once`() async throws {
        try await withNodes(2) { _, nodes in
            for seed in 1...6 { _ = try await nodes[0].file(sampleBytes(1500, seed: UInt64(seed))) }
            async let one: Void = nodes[0].scrubAll()
            async let other: Void = nodes[1].scrubAll()
            _ = try await (one, other)
            let counts = nodes.map(\.engine.scrubbed)
            #expect(counts.map(\.verifiedCount).reduce(0, +) == 6)
            #expect(counts.map(\.byteCount).reduce(0, +) == 9000)
        }
    }

    @Test func `a damaged object is refused on every node, and healed by the same content`()
        async throws
    {
        try await withNodes(2) { fixture, nodes in
            let file = try await nodes[0].file(content)
            try await damage(file, in: fixture)
            try await nodes[1].scrubAll()
            for node in nodes {
                await #expect(throws: EngineError(.fileDamaged)) {
                    try await node.engine.file(file.id, owner: file.owner)
                }
            }
            _ = try await nodes[0].file(content)
            let now = try await nodes[1].engine.file(file.id, owner: file.owner)
            #expect(try await nodes[1].content(of: now) == content)
        }
    }
}
