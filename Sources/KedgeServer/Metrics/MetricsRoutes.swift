internal import HTTPTypes
internal import Hummingbird
internal import KedgeMetrics
internal import NIOCore

/// `GET /metrics`: the metrics of this process for Prometheus.
struct MetricsRoutes: Sendable {
    let metrics: Metrics

    @Sendable func scrape(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        try await answer(request)
    }

    func answer(_ request: Request) async throws -> Response {
        let format = MetricsFormat(accept: request.headers[.accept])
        let text = await metrics.text(format)
        return Response(
            status: .ok,
            headers: [.contentType: format.contentType, .vary: "Accept"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
