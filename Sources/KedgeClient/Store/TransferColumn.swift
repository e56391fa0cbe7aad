/// A column of the client's tables.
///
/// The case names the column in code and the raw value in the schema.
enum TransferColumn: String, Sendable {
    // Both tables of transfers.
    case transferID = "transfer_id"
    case serverURL = "server_url"
    case state
    case pauseReason = "pause_reason"
    case signInNeeded = "sign_in_needed"
    case control
    case lastErrorCode = "last_error_code"
    case lastErrorMessage = "last_error_message"
    case attemptCause = "attempt_cause"
    case attemptHost = "attempt_host"
    case attemptPort = "attempt_port"
    case attemptNumber = "attempt_number"
    case nextAttemptAt = "next_attempt_at"
    case lastServerStatus = "last_server_status"
    case lastRequestID = "last_request_id"
    case lastGoodByteOffset = "last_good_byte_offset"
    case integrityFailureCount = "integrity_failure_count"
    case readBackBytes = "read_back_bytes"
    case verification
    case ownerToken = "owner_token"
    case ownerProcess = "owner_process"
    case ownerHeartbeat = "owner_heartbeat"
    case createdAt = "created_at"
    case updatedAt = "updated_at"
    case remoteFileID = "remote_file_id"
    case chunkSize = "chunk_size"
    case fileHash = "file_hash_sha256"
    case keepsModificationTime = "keeps_modification_time"

    // The table of uploads.
    case path
    case fileName = "file_name"
    case fileSize = "file_size"
    case modifiedNanoseconds = "modified_nanoseconds"
    case changedNanoseconds = "changed_nanoseconds"
    case inode
    case mimeType = "mime_type"
    case metadata
    case sendsAllBytes = "sends_all_bytes"
    case dialect
    case uploadURL = "upload_url"
    case interopVersion = "interop_version"
    case maxConcurrentChunks = "max_concurrent_chunks"
    case uploadedChunks = "uploaded_chunks"
    case sessionID = "session_id"
    case givenSessionID = "given_session_id"
    case adoptSessionID = "adopt_session_id"
    case idempotencyKey = "idempotency_key"
    case expiresAt = "expires_at"
    case link
    case sessionLink = "session_link"
    case isLinkRedacted = "is_link_redacted"
    case hashState = "hash_state"
    case hashOffset = "hash_offset"
    case replaces
    case replacedBy = "replaced_by"

    // The table of downloads; `partial_bytes` is the sum over its unfinished chunks.
    case remoteURL = "remote_url"
    case isURLRedacted = "is_url_redacted"
    case destinationPath = "destination_path"
    case tempPath = "temp_path"
    case tempInode = "temp_inode"
    case overwrites
    case expectedSize = "expected_size"
    case expectedHash = "expected_hash"
    case isHashPinned = "is_hash_pinned"
    case etag
    case isValidatorWeak = "is_validator_weak"
    case resumesUnverified = "resumes_unverified"
    case downloadedChunks = "downloaded_chunks"
    case partialBytes = "partial_bytes"
    case remoteChangeCount = "remote_change_count"
    case isDestinationInDoubt = "is_destination_in_doubt"

    // The tables of chunks.
    case chunkIndex = "chunk_index"
    case attempts
    case sha256
    case expectedSHA256 = "expected_sha256"
    case actualSHA256 = "actual_sha256"
    case noticedCount = "noticed_count"
    case notedBytes = "noted_bytes"
    case notedState = "noted_state"
    case syncedBytes = "synced_bytes"
    case syncedState = "synced_state"
}
