import Foundation
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// `GET /metrics` over real HTTP.
@Suite(.timeLimit(.minutes(1))) struct MetricsRouteTests {
    /// Returns the value of a series; nil when it is absent.
    private func value(_ series: String, in text: String) -> Double? {
        for line in text.split(separator: "\n") where line.hasPrefix(series + " ") {
            return Double(line.dropFirst(series.count + 1))
        }
        return nil
    }

    @Test func `requests, bytes and errors are counted by route and protocol`() async throws {
        try await withServer { server in
            let upload = try await server.upload(Array("content".utf8)).remoteFileId
            _ = try await server.ask(HTTPRequestBytes("GET", "/files/\(upload)"))
            _ = try await server.ask(HTTPRequestBytes("GET", "/nowhere"))
            _ = try await server.ask(HTTPRequestBytes("PROPFIND", "/nowhere"))
            let answer = try await server.ask(HTTPRequestBytes("GET", "/metrics"))
            #expect(answer.status == 200)
            #expect(answer.field("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            let text = String(decoding: answer.body, as: UTF8.self)
            let requests = "kedge_http_requests_total"
            #expect(
                value(
                    "\(requests){method=\"GET\",route=\"/files/{fileId}\",protocol=\"native\","
                        + "status=\"2xx\"}", in: text) == 1)
            #expect(
                value(
                    "\(requests){method=\"other\",route=\"unknown\",protocol=\"native\","
                        + "status=\"4xx\"}", in: text) == 1)
            #expect(value("kedge_errors_total{code=\"ROUTE_NOT_FOUND\"}", in: text) == 2)
            #expect(value("kedge_http_requests_in_flight", in: text) == 1)
            #expect(value("kedge_download_bytes_total", in: text) == 7)
            #expect(value("kedge_damaged_blobs", in: text) == 0)
            #expect((value("kedge_storage_free_bytes", in: text) ?? 0) > 0)
            #expect((value("process_resident_memory_bytes", in: text) ?? 0) > 1_000_000)
        }
    }

    @Test func `the format is OpenMetrics for a client that asks for it`() async throws {
        try await withServer { server in
            let answer = try await server.ask(
                HTTPRequestBytes(
                    "GET", "/metrics", [("Accept", "application/openmetrics-text; version=1.0.0")]))
            #expect(String(decoding: answer.body, as: UTF8.self).hasSuffix("# EOF\n"))
        }
    }
}
