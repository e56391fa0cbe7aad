internal import Foundation
internal import KedgeModel

let messageTargets = [FuzzTarget(name: "messages") { checkMessages($0) }]

/// Decodes each input as every message type of client and server.
private func checkMessages(_ bytes: [UInt8]) {
    check(CreateSessionRequest.self, bytes)
    check(CreateSessionResponse.self, bytes)
    check(ChunkReceipt.self, bytes)
    check(SessionStatus.self, bytes)
    check(FinalizeRequest.self, bytes)
    check(FinalizePending.self, bytes)
    check(FinalizeResponse.self, bytes)
    check(FileMeta.self, bytes)
    check(FileChunks.self, bytes)
    check(FileList.self, bytes)
    check(ProblemDocument.self, bytes)
}

private func check<Message: Codable & Equatable>(_ type: Message.Type, _ bytes: [UInt8]) {
    // A decoder may refuse any input; only accepted messages are checked.
    guard let message = try? JSONDecoder().decode(type, from: Data(bytes)) else { return }
    do {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let written = try encoder.encode(message)
        let again = try JSONDecoder().decode(type, from: written)
        require(again == message, "a \(type) reads back: \(Array(written).text)")
        require(try encoder.encode(again) == written, "a \(type) has one text")
        require(written.allSatisfy { $0 >= 0x20 }, "a \(type) is one line")
    } catch {
        fatalError("a \(type) that was read cannot be written and read: \(error)")
    }
}
