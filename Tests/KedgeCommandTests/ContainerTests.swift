import Foundation
import KedgeModel
import Testing

/// `--check-container`, which is off by default (R21).
@Suite(.timeLimit(.minutes(2)))
struct ContainerTests {
    let fixture: CommandEnvironment
    /// A film whose last box is longer than the rest of the file.
    private let film: [UInt8] =
        [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0]
        + [0, 0, 1, 0] + Array("moov".utf8) + [1, 2, 3]

    init() throws {
        fixture = try CommandEnvironment()
        try Data(film).write(to: URL(fileURLWithPath: fixture.path("film.mp4")))
    }

    private let complaint = "This MP4 file looks incomplete: a part of it is cut short."

    @Test func `a truncated film causes a warning and arrives unchanged`() async throws {
        let server = try await fixture.serve()
        let upload = try await fixture.run([
            "upload", fixture.path("film.mp4"), "--server", server.url, "--check-container", "warn",
        ])
        #expect(upload.termination == .exited(0))
        #expect(upload.errors.contains(complaint))
        let id = try #require(upload.lines.first)
        let download = try await fixture.run([
            "download", id, "--output", fixture.path("copy"), "--server", server.url,
            "--check-container", "warn", "--json",
        ])
        #expect(download.termination == .exited(0))
        #expect(download.errors.contains(complaint))
        #expect(download.output.contains(#""type":"warning""#))
        let copy = try Data(contentsOf: URL(fileURLWithPath: fixture.path("copy")))
        #expect(Array(copy) == film)
    }

    @Test func `a truncated film is refused with --check-container refuse`() async throws {
        let server = try await fixture.serve()
        let refused = try await fixture.run([
            "upload", fixture.path("film.mp4"), "--server", server.url, "--check-container",
            "refuse", "--json",
        ])
        #expect(refused.termination == .exited(ExitStatus.integrity))
        #expect(try refused.results.map(\.errorCode) == ["FILE_TRUNCATED"])
        let transfers = try await fixture.transfers()
        #expect(transfers.isEmpty)
    }

    @Test func `a film is not checked without --check-container`() async throws {
        let server = try await fixture.serve()
        let upload = try await fixture.run([
            "upload", fixture.path("film.mp4"), "--server", server.url,
        ])
        #expect(upload.termination == .exited(0))
        #expect(!upload.errors.contains("incomplete"))
        let wrong = try await fixture.run([
            "download", "x", "--server", server.url, "--check-container", "refuse",
        ])
        #expect(wrong.termination == .exited(ExitStatus.usage))
    }
}
