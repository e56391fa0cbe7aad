import Foundation
import KedgeModel
import Testing

/// R124: the memory of the client depends on the chunks in flight, not on the size of the file.
///
/// Serialized, because each test moves 384 MiB through processes that hash and sync.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ClientMemoryTests {
    private static let chunkSize = 8 << 20
    private static let connections = 4
    /// Memory of the allocator and of libcurl.
    private static let slack = 16 << 20

    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// Runs a command to its end and returns its peak resident memory in bytes.
    private func peak(_ arguments: [String]) async throws -> Int {
        let child = try fixture.start(arguments + ["--connections", "\(Self.connections)"])
        var peak = 0
        while child.isRunning {
            peak = max(peak, Self.highWaterMark(of: child.id) ?? 0)
            try await Task.sleep(for: .milliseconds(2))
        }
        #expect(try await child.wait() == .exited(0), "\(child.errors)")
        #expect(peak > 0)
        return peak
    }

    /// The value only grows, so a read shortly before the end gives the peak.
    private static func highWaterMark(of process: pid_t) -> Int? {
        let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = status?.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split { !$0.isNumber }.first.flatMap { Int($0) }.map { $0 << 10 }
    }

    @Test func `an upload holds only its chunks in flight in memory`() async throws {
        let server = try await fixture.serve()
        let small = try fixture.sample("small", mebibytes: 0, plus: 1)
        let large = try fixture.sample("large", mebibytes: 384)
        let upload = ["upload", "--server", server.url, "--chunk-size", "\(Self.chunkSize)"]
        let idle = try await peak(upload + [small.path])
        let busy = try await peak(upload + [large.path])
        // The client reads one more chunk while those are in flight; a second copy of each would
        // exceed the bound.
        let bound = (Self.connections + 1) * Self.chunkSize + Self.slack
        #expect(busy - idle < bound, "\((busy - idle) >> 20) MiB")
    }

    @Test func `a download holds no more than its chunks in flight in memory`() async throws {
        let server = try await fixture.serve()
        let small = try fixture.sample("small", mebibytes: 0, plus: 1)
        let large = try fixture.sample("large", mebibytes: 384)
        var ids: [String] = []
        for sample in [small, large] {
            let up = try await fixture.run([
                "upload", sample.path, "--server", server.url, "--chunk-size",
                "\(Self.chunkSize)",
            ])
            ids.append(try #require(up.lines.first))
        }
        let download = ["download", "--server", server.url, "-o"]
        let idle = try await peak(download + [fixture.path("one"), ids[0]])
        let busy = try await peak(download + [fixture.path("two"), ids[1]])
        let bound = Self.connections * Self.chunkSize + Self.slack
        #expect(busy - idle < bound, "\((busy - idle) >> 20) MiB")
    }
}
