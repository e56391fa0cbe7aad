import HTTPTypes
import KedgeTesting
import KedgeTransport

/// The documents of issuers, in place of the network.
final class FakeIssuer: HTTPTransport {
    struct Document: Sendable {
        var body: String
        var status = 200
        var fields: HTTPFields = [:]
    }

    private struct State {
        var documents: [String: Document] = [:]
        var asked: [String] = []
        var gate: Gate?
    }

    private let state = Shared(State())

    /// The addresses that were asked, in order.
    var asked: [String] { state.value.asked }

    /// Holds requests from now on until the gate is open.
    func hold(with gate: Gate?) { state.update { $0.gate = gate } }

    /// Removes all documents: the issuer is down.
    func stop() { state.update { $0.documents = [:] } }

    func serve(_ url: String, _ document: Document) {
        state.update { $0.documents[url] = document }
    }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        state.update { $0.asked.append(request.url) }
        await state.value.gate?.wait()
        guard let document = state.value.documents[request.url] else {
            throw TransportError(.offline)
        }
        let rest = Shared(Array(document.body.utf8)[...])
        return TransportResponse(
            status: document.status, headerFields: document.fields,
            body: TransportResponseBody { () async throws(TransportError) -> [UInt8]? in
                rest.update { rest in
                    let piece = Array(rest.prefix(64 << 10))
                    rest = rest.dropFirst(piece.count)
                    return piece.isEmpty ? nil : piece
                }
            })
    }

    func shutdown() async {}
}
