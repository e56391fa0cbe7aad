import KedgeModel
import KedgeTesting
import Testing

/// Expects a problem document with the code and its status from the error table.
@discardableResult
func expectProblem(
    _ answer: HTTPAnswer, _ code: ErrorCode, _ location: SourceLocation = #_sourceLocation
) throws -> ProblemDocument {
    #expect(answer.status == code.facts.httpStatus, sourceLocation: location)
    #expect(answer.field("Content-Type") == "application/problem+json", sourceLocation: location)
    let problem = try answer.decoded(ProblemDocument.self)
    #expect(problem.code == code.rawValue, sourceLocation: location)
    #expect(problem.status == answer.status, sourceLocation: location)
    #expect(problem.type == "urn:kedge:error:\(code.rawValue)", sourceLocation: location)
    #expect(problem.requestId == answer.field("X-Request-Id"), sourceLocation: location)
    #expect(problem.requestId?.isEmpty == false, sourceLocation: location)
    return problem
}

/// Expects that the process answers.
func expectAlive(
    _ server: RunningServer, _ location: SourceLocation = #_sourceLocation
) async throws {
    #expect(try await server.get("/healthz").status == 200, sourceLocation: location)
}

/// Runs requests and expects that the status of the session is the same afterwards.
func expectUnchanged<Result>(
    _ upload: Upload, on server: RunningServer, _ location: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Result
) async throws -> Result {
    let before = try await server.status(of: upload)
    let result = try await body()
    #expect(try await server.status(of: upload) == before, sourceLocation: location)
    return result
}
