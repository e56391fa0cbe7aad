internal import Foundation

/// Runs curl as a user does.
enum Curl {
    /// Fetches a file and waits until curl ends.
    ///
    /// - Throws: ``BenchFailure`` with curl's output when it fails.
    static func fetch(
        _ bench: Bench, _ path: String, from server: any Server, to destination: String
    ) throws {
        try run(bench, ["--output", destination], path, of: server)
    }

    /// Sends a file in one request to `POST /files`, and returns the answer.
    ///
    /// - Throws: ``BenchFailure`` with curl's output when it fails.
    static func post(
        _ bench: Bench, _ file: String, to server: any Server
    ) throws -> UploadSession.Finalized {
        let directory = try bench.scratch.makeDirectory("answer")
        defer { Scratch.remove(directory) }
        let answer = "\(directory)/answer"
        // Without Expect, curl does not wait for 100 (RFC 9110 section 10.1.1).
        let words = ["--request", "POST", "--upload-file", file, "--header", "Expect:"]
        try run(bench, words + ["--output", answer], "/files", of: server)
        return try JSONDecoder().decode(
            UploadSession.Finalized.self, from: Data(TextFile.read(answer).utf8))
    }

    private static func run(
        _ bench: Bench, _ words: [String], _ path: String, of server: any Server
    ) throws {
        let directory = try bench.scratch.makeDirectory("curl")
        defer { Scratch.remove(directory) }
        // One cipher for all servers: by themselves, they choose different ones.
        let tls = server.certificate.map {
            ["--cacert", $0.path, "--tls13-ciphers", "TLS_AES_128_GCM_SHA256"]
        }
        let curl = try BenchProcess(
            try Executable.require("curl"),
            ["--silent", "--show-error", "--fail"] + (tls ?? []) + words + [server.url + path],
            home: directory, log: "\(directory)/log")
        guard try curl.wait(limit: 600).status == 0 else {
            throw BenchFailure("curl: \(try TextFile.read("\(directory)/log"))")
        }
    }
}
