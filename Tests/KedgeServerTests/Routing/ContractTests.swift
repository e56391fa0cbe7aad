import Foundation
import KedgeIdentity
import KedgeModel
import KedgeServer
import Testing
import Yams

/// Compares `openapi/kedge.yaml` with the router and the error table: neither has an entry that the
/// other lacks.
@Suite(.timeLimit(.minutes(1))) struct ContractTests {
    private let document: [String: Any]

    init() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../openapi/kedge.yaml").standardizedFileURL
        let text = try String(contentsOf: file, encoding: .utf8)
        document = try #require(try Yams.load(yaml: text) as? [String: Any])
    }

    @Test func `the contract lists the operations that the router answers`() async throws {
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let methods: Set = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]
        let listed = paths.flatMap { path, item in
            item.keys.filter { methods.contains($0) }.map { "\($0.uppercased()) \(path)" }
        }
        let answered = try await withServer { ServiceOperations.all(engine: $0.engine) }
        #expect(Set(listed) == Set(answered.keys))
    }

    @Test func `the contract names the scopes and links of each operation as the routes do`()
        async throws
    {
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let accesses = try await withServer { ServiceOperations.all(engine: $0.engine) }
        for (operation, access) in accesses {
            let words = operation.split(separator: " ")
            let item = paths[String(words[1])]?[words[0].lowercased()] as? [String: Any]
            // Each alternative is one scheme with one scope or kind of link; an empty list is a
            // public operation.
            let listed = try #require(item?["security"] as? [[String: [String]]], "\(operation)")
            switch access.rule {
            case .open: #expect(listed.isEmpty, "\(operation)")
            case .anyPrincipal: #expect(listed == [["bearer": []]], "\(operation)")
            case .anyOf(let scopes):
                let links = access.links.map(\.rawValue).sorted().map { ["link": [$0]] }
                let tokens = scopes.map { ["bearer": [$0.rawValue]] }
                #expect(listed == tokens + links, "\(operation)")
            }
            let responses = item?["responses"] as? [String: Any]
            for status in ["401", "403"] {
                #expect((responses?[status] != nil) == (access != .public), "\(operation)")
            }
        }
    }

    @Test func `the contract has the version of the program`() throws {
        let info = try #require(document["info"] as? [String: Any])
        #expect(info["version"] as? String == KedgeVersion.current)
    }

    /// The request gate runs before every route and may refuse any request.
    @Test func `each operation lists the statuses of malformed requests and bodies`() throws {
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let operations = paths.flatMap { path, item in
            item.compactMap { method, operation in
                (operation as? [String: Any]).map { (name: "\(method) \(path)", operation: $0) }
            }
        }
        #expect(!operations.isEmpty)
        for (name, operation) in operations {
            let responses = operation["responses"] as? [String: Any]
            #expect(responses?["400"] != nil, "\(name)")
            let takesBody = operation["requestBody"] != nil
            #expect((responses?["501"] != nil) == takesBody, "\(name)")
            #expect((responses?["415"] != nil) == takesBody, "\(name)")
        }
    }

    /// A code and the status that the contract gives it.
    private struct Row: Hashable, CustomStringConvertible {
        var code: String
        var status: Int
        var description: String { "\(code) \(status)" }
    }

    private static var table: Set<Row> {
        Set(
            ErrorCode.allCases.compactMap { code in
                code.facts.httpStatus.map { Row(code: code.rawValue, status: $0) }
            })
    }

    @Test func `the contract gives each code the status of the error table`() {
        var rows: Set<Row> = []
        Self.collect(from: document, into: &rows)
        #expect(rows.union(Self.general(document)) == Self.table)
    }

    /// Collects rows from the problem schemas, which name the codes beside the status.
    private static func collect(from node: Any, into rows: inout Set<Row>) {
        if let list = node as? [Any] { for item in list { collect(from: item, into: &rows) } }
        guard let mapping = node as? [String: Any] else { return }
        if let status = (mapping["status"] as? [String: Any])?["const"] as? Int,
            let codes = (mapping["code"] as? [String: Any])?["enum"] as? [String]
        {
            for code in codes { rows.insert(Row(code: code, status: status)) }
        }
        for value in mapping.values { collect(from: value, into: &rows) }
    }

    /// Rows that hold for every address; the description has them as text: "405
    /// `METHOD_NOT_ALLOWED`".
    private static func general(_ document: [String: Any]) -> Set<Row> {
        let text = (document["info"] as? [String: Any])?["description"] as? String ?? ""
        var rows: Set<Row> = []
        for match in text.matches(of: /(\d{3})\s+`([A-Z_]+)`/) {
            if let status = Int(match.output.1) {
                rows.insert(Row(code: String(match.output.2), status: status))
            }
        }
        return rows
    }
}
