import KedgeModel
import KedgeTesting
import Testing

/// Links that die after few bytes, and with `KEDGE_TORTURE=1` large files over every bad link.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct RoughLinkTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// Faults of a link in both directions.
    enum Trouble: String, CaseIterable, CustomTestStringConvertible {
        case finish = "300 KiB before the end of the connection"
        case reset = "300 KiB before a reset"
        case flips = "a flipped bit in every 11 MiB"
        case silence = "silence after 2 MiB, three times"
        case slowness = "8 MiB a second"

        var testDescription: String { rawValue }

        func faults(_ direction: Faults.Direction) -> Faults {
            var faults = Faults(direction: direction)
            switch self {
            case .finish: faults.cutsAfter = 300 << 10
            case .reset: (faults.cutsAfter, faults.cut) = (300 << 10, .reset)
            case .flips: faults.flipsEvery = 11 << 20
            case .silence: (faults.stallsAfter, faults.stallCount) = (2 << 20, 3)
            case .slowness: faults.bytesPerSecond = 8 << 20
            }
            return faults
        }
    }

    // R1, R16, R132, R137.
    @Test(
        .enabled(if: Torture.isOn, "long-runs: KEDGE_TORTURE=1 asks for them"),
        arguments: Trouble.allCases)
    func `a large file survives upload and download over a link that is always bad`(
        trouble: Trouble
    ) async throws {
        let source = try fixture.sample(mebibytes: Torture.mebibytes, plus: 1)
        try await expectThereAndBack(source, trouble.faults)
    }

    // R1, R132: 4 MiB chunks, of which one connection carries a sixty-fourth.
    @Test(arguments: Faults.Cut.allCases)
    func `a file survives upload and download over connections that carry 64 KiB each`(
        cut: Faults.Cut
    ) async throws {
        let source = try fixture.sample(mebibytes: Torture.isOn ? 24 : 6, plus: 1)
        let proxies = try await expectThereAndBack(source) { direction in
            Faults(direction: direction, cutsAfter: 64 << 10, cut: cut)
        }
        // Some connections end by themselves, after an early answer.
        for proxy in proxies { #expect(proxy.counts.cutCount > source.byteCount >> 17) }
        // A reset may discard bytes that the receiver had not read yet.
        if cut == .finish {
            #expect(proxies[0].counts.upByteCount < source.byteCount * 3 / 2)
            #expect(proxies[1].counts.downByteCount < source.byteCount * 3 / 2)
        }
    }

    /// - Returns: The proxies of the upload and the download.
    @discardableResult
    private func expectThereAndBack(
        _ source: SampleFile, _ faults: (Faults.Direction) -> Faults
    ) async throws -> [FaultyProxy] {
        let server = try await fixture.serve()
        let up = try fixture.proxy(to: server.port, faults(.up))
        let uploaded = try await fixture.run(
            ["upload", source.path, "--server", up.url, "--json"], within: Torture.limit)
        try uploaded.expectCompleted(source)
        try [server].expectTakenOnce(source)
        let id = try #require(try uploaded.result.remoteFileId)
        let down = try fixture.proxy(to: server.port, faults(.down))
        let copy = fixture.path("copy.bin")
        let downloaded = try await fixture.run(
            ["download", id, "-o", copy, "--server", down.url, "--json"], within: Torture.limit)
        try downloaded.expectCompleted(source)
        #expect(try SampleFile.digest(of: copy) == source.digest)
        return [up, down]
    }
}
