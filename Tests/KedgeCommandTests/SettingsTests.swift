import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Settings of the user, `kedge login`, limits of the rate, the log, and permissions of downloads.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct SettingsTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    @Test func `a server that was saved is used by its name, and by default`() async throws {
        let server = try await fixture.serve()
        let saved = try await fixture.shell("echo secret | $K login work \(server.url)")
        #expect(saved.termination == .exited(0), "\(saved.errors)")
        let file = "\(fixture.settings)/servers.yaml"
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let source = try fixture.sample(mebibytes: 1)
        let uploaded = try await fixture.run(["upload", "@work", source.path, "-v"])
        #expect(uploaded.termination == .exited(0), "\(uploaded.errors)")
        #expect(uploaded.errors.contains("method=PUT"))
        #expect(uploaded.errors.contains("status=201"))
        #expect(!uploaded.errors.contains("secret"))
        let id = uploaded.output.trimmingCharacters(in: .newlines)
        for arguments in [[], ["--server", "@work"]] {
            let listed = try await fixture.run(["files", "list"] + arguments)
            #expect(listed.output.contains(id))
        }
        let wrong = try await fixture.run(["files", "list", "--server", "@wrok"])
        #expect(wrong.termination == .exited(ExitStatus.usage))
        #expect(wrong.errors.contains("Did you mean work?"))
    }

    @Test func `a server that does not answer is not saved`() async throws {
        // Bound, but nothing listens.
        let (socket, port) = try LoopbackSocket.bound()
        defer { close(socket) }
        let saved = try await fixture.shell("$K login work http://127.0.0.1:\(port) </dev/null")
        #expect(saved.termination == .exited(ExitStatus.network))
        #expect(fixture.names(in: fixture.settings) == [])
    }

    @Test(arguments: [
        ("bwlimt: 3M\n", 0o600, "config.yaml:1: bwlimt is not a setting. Did you mean bwlimit?"),
        ("\nservers:\n  a:\n    token: x\n", 0o600, "the server a has no url"),
        ("servers:\n  a:\n    url: http://x\n    token: y\n", 0o644, "chmod 600"),
        ("connections: 99\n", 0o600, "config.yaml:1: connections must be 1 to 32."),
        ("bwlimit: fast\n", 0o600, "config.yaml:1: bwlimit must be a rate"),
        ("a: [\n", 0o600, "cannot be read as YAML"), ("- a\n", 0o600, "names with values"),
    ])
    func `a mistake in the settings is named with its line`(
        text: String, permissions: Int, message: String
    ) async throws {
        try fixture.write(text, permissions: permissions)
        let finished = try await fixture.run(["transfers", "list"])
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(finished.errors.contains(message))
    }

    // A privileged user may read everything, so permissions are no part of this.
    @Test(arguments: [
        ("config.yaml", "ln -s config.yaml config.yaml", "symbolic links"),
        ("servers.yaml", "mkdir servers.yaml", "It is not a file"),
        ("servers.yaml", "mkfifo servers.yaml", "It is not a file"),
        ("config.yaml", "printf '\\377' > config.yaml", "It is not UTF-8"),
    ])
    func `settings that cannot be read do not count as none`(
        name: String, line: String, reason: String
    ) async throws {
        let made = try await fixture.shell(
            "mkdir -p \"$HOME/.config/kedge\" && cd \"$HOME/.config/kedge\" && \(line)")
        #expect(made.termination == .exited(0), "\(made.errors)")
        let finished = try await fixture.run(["transfers", "list"])
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(finished.errors.contains("\(fixture.settings)/\(name) cannot be read: "))
        #expect(finished.errors.contains(reason), "\(finished.errors)")
    }

    @Test func `a home that is not a directory has no settings`() async throws {
        let state = fixture.path("state")
        let finished = try await fixture.shell(
            "HOME=/dev/null \"$K\" transfers list --state-directory '\(state)'")
        #expect(finished.termination == .exited(0), "\(finished.errors)")
    }

    @Test func `tokens come from a file or a command, and go only to their server`() async throws {
        let server = try await fixture.serve()
        let log = fixture.path("asked")
        try fixture.write(
            """
            servers:
              own:
                url: \(server.url)
                tokenCommand: "echo asked >> \(log); echo secret"
              other:
                url: http://127.0.0.1:1
                tokenCommand: "exit 1"
            """)
        let listed = try await fixture.run(["files", "list", "--server", "@own"])
        #expect(listed.termination == .exited(0), "\(listed.errors)")
        #expect(try String(contentsOfFile: log, encoding: .utf8) == "asked\n")
        // Records need no token.
        let records = try await fixture.run(["transfers", "list", "--server", "@own"])
        #expect(records.termination == .exited(0))
        #expect(try String(contentsOfFile: log, encoding: .utf8) == "asked\n")
        let failed = try await fixture.run(["files", "list", "--server", "@other"])
        #expect(failed.termination == .exited(ExitStatus.usage))
        #expect(failed.errors.contains("the tokenCommand of @other failed: exit exited"))
    }

    @Test func `the rate is limited, and the limit changes while the command runs`() async throws {
        let server = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 24)
        let began = ContinuousClock.now
        let limited = try await fixture.run(
            ["upload", source.path, "--server", server.url, "--bwlimit", "8M"])
        #expect(limited.termination == .exited(0))
        #expect(began.duration(to: .now) > .milliseconds(2200))
        let copy = fixture.path("copy")
        let again = ContinuousClock.now
        let client = try fixture.start(
            ["download", "last", "-o", copy, "--server", server.url, "--bwlimit", "1G:200K"])
        // At the first rate, it would take two minutes.
        try await Task.sleep(for: .seconds(2))
        #expect(client.isRunning)
        let heard = try await fixture.run(["transfers", "limit", "off"])
        #expect(heard.termination == .exited(0) && heard.errors == "", "\(heard.errors)")
        #expect(try await fixture.finish(client, within: .seconds(30)).termination == .exited(0))
        #expect(again.duration(to: .now) < .seconds(30))
        #expect(try SampleFile.digest(of: copy) == source.digest)
        let unheard = try await fixture.run(["transfers", "limit", "off"])
        #expect(unheard.termination == .exited(0) && unheard.errors != "")
    }

    @Test(arguments: [("022", 0o644), ("027", 0o640), ("077", 0o600)])
    func `a finished download has the permissions of a new file`(
        mask: String, permissions: Int
    ) async throws {
        let server = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 1)
        let id = try await fixture.upload(source, to: server.url)
        let copy = fixture.path("copy")
        let finished = try await fixture.shell(
            "umask \(mask); $K download \(id) -o '\(copy)' --server \(server.url)")
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let attributes = try FileManager.default.attributesOfItem(atPath: copy)
        #expect(attributes[.posixPermissions] as? Int == permissions)
    }

    @Test func `the log goes to a file that only its owner can read`() async throws {
        let server = try await fixture.serve()
        let log = fixture.path("log")
        let finished = try await fixture.run(
            ["files", "list", "--server", server.url, "-vv", "--log-file", log])
        #expect(finished.errors == "")
        let text = try String(contentsOfFile: log, encoding: .utf8)
        #expect(text.contains("debug request"))
        #expect(text.contains("trace answer"))
        let attributes = try FileManager.default.attributesOfItem(atPath: log)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `ids are taken by their beginning, and records go`() async throws {
        let server = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 1)
        let id = try await fixture.upload(source, to: server.url)
        for name in [id, String(id.prefix(8)), "last"] {
            let verified = try await fixture.run(
                ["files", "verify", source.path, name, "--server", server.url])
            #expect(verified.termination == .exited(0), "\(verified.errors)")
        }
        let other = try fixture.sample("other.bin", mebibytes: 2)
        let wrong = try await fixture.run(
            ["files", "verify", other.path, id, "--server", server.url])
        #expect(wrong.termination == .exited(ExitStatus.integrity))
        let unknown = try await fixture.run([
            "files", "show", id.hasPrefix("ffff") ? "eeee" : "ffff", "--server", server.url,
        ])
        #expect(unknown.termination == .exited(ExitStatus.notFound))
        let shown = try await fixture.run(["transfers", "show", "last"])
        #expect(shown.output.contains(id))
        #expect(try await fixture.run(["transfers", "rm", "last"]).termination == .exited(0))
        #expect(try await fixture.transfers().isEmpty)
    }

    @Test(arguments: [
        ("missing", ExitStatus.sourceChanged), (".", ExitStatus.usage),
        ("source.bin/below", ExitStatus.usage),
    ])
    func `a file that cannot be verified is named, without words about uploads`(
        name: String, status: Int32
    ) async throws {
        let server = try await fixture.serve()
        let source = try fixture.sample(mebibytes: 1)
        let id = try await fixture.upload(source, to: server.url)
        let path = fixture.path(name)
        let finished = try await fixture.run(["files", "verify", path, id, "--server", server.url])
        #expect(finished.termination == .exited(status), "\(finished.errors)")
        #expect(finished.errors.hasPrefix("kedge: \(path): "), "\(finished.errors)")
        #expect(!finished.errors.contains("upload"), "\(finished.errors)")
    }

    @Test func `resume --all finishes the transfers of processes that were killed`() async throws {
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 6 << 20))
        var samples: [SampleFile] = []
        for number in 0..<2 {
            let sample = try fixture.sample("\(number).bin", mebibytes: 8, seed: UInt64(number))
            samples.append(sample)
            let client = try fixture.start(["upload", sample.path, "--server", proxy.url])
            try await eventually("it runs") { server.requests.sessionIDs.count > number }
            client.signal(SIGKILL)
            _ = try await client.wait()
        }
        let finished = try await fixture.run(["transfers", "resume", "--all"])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        let ids = finished.output.split(separator: "\n").map(String.init)
        #expect(ids.count == 2)
        for (sample, id) in zip(samples, ids) {
            try await fixture.expectServed(sample, id: id, at: server.url)
        }
        let none = try await fixture.run(["transfers", "resume", "--all"])
        #expect(none.errors == "There is nothing to resume.\n")
    }
}
