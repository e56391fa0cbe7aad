import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// The option `--keep-mtime`.
@Suite(.timeLimit(.minutes(2)))
struct ModificationTimeTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    @Test func `an upload with its time is known when the command runs again`() async throws {
        let server = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 1)
        let arguments = ["upload", source.path, "--keep-mtime", "--server", server.url]
        let first = try await fixture.run(arguments)
        #expect(first.termination == .exited(0), "\(first.errors)")
        let again = try await fixture.run(arguments)
        #expect(again.output == first.output)
        let id = first.output.trimmingCharacters(in: .newlines)
        try await fixture.expectServed(source, id: id, at: server.url)
    }

    /// The modification time of a file to the nanosecond.
    private func modified(_ path: String) throws -> timespec {
        var status = stat()
        guard stat(path, &status) == 0 else { throw TestFailure("no file \(path)") }
        return status.st_mtim
    }

    @Test(arguments: ["native", "tus"])
    func `files of a folder come back with their times`(uploadProtocol: String) async throws {
        let server = try await fixture.serve()
        let folder = fixture.path("trip")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        let times = [timespec(tv_sec: 784_111_777, tv_nsec: 123_456_789), timespec()]
        for (index, time) in times.enumerated() {
            let sample = try fixture.sample("trip/\(index).bin", mebibytes: 1, seed: UInt64(index))
            #expect(utimensat(AT_FDCWD, sample.path, [time, time], 0) == 0)
        }
        let up = try await fixture.run([
            "upload", "-r", folder, "--keep-mtime", "--protocol", uploadProtocol, "--server",
            uploadProtocol == "tus" ? "\(server.url)/tus/" : server.url,
        ])
        #expect(up.termination == .exited(0), "\(up.errors)")
        let copies = fixture.path("copies")
        let down = try await fixture.run([
            "download", "--prefix", "trip", "-o", copies, "--keep-mtime", "--server", server.url,
        ])
        #expect(down.termination == .exited(0), "\(down.errors)")
        for (index, time) in times.enumerated() {
            let copied = try modified("\(copies)/trip/\(index).bin")
            #expect(copied.tv_sec == time.tv_sec && copied.tv_nsec == time.tv_nsec)
        }
    }

    @Test func `a download from another server gets the time of Last-Modified`() async throws {
        let content = Array("content".utf8)
        let server = try RangeServer { head, _ in
            var answer = RangeServer.Answer.honest(content, etag: "\"v1\"", head)
            answer.fields["Last-Modified"] = "Sun, 06 Nov 1994 08:49:37 GMT"
            return answer
        }
        let copy = fixture.path("copy")
        let finished = try await fixture.run(["download", server.url, "-o", copy, "--keep-mtime"])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let attributes = try FileManager.default.attributesOfItem(atPath: copy)
        let date = try #require(attributes[.modificationDate] as? Date)
        #expect(date.timeIntervalSince1970 == 784_111_777)
    }

    @Test(arguments: [
        ["upload", "-", "--name", "x"], ["upload", "x", "--protocol", "resumable-upload"],
        ["upload", "x", "--session", "abcd"], ["download", "abcd", "-o", "-"],
    ])
    func `where there is no time to keep, the option is refused`(
        arguments: [String]
    ) async throws {
        let finished = try await fixture.run(arguments + ["--keep-mtime"])
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(finished.errors.contains("--keep-mtime"))
    }
}
