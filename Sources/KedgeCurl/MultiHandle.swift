import CCurl

/// Owns libcurl's multi handle: the transfers under way and the connections kept between them.
///
/// For use on one thread only, except ``Waker``.
@safe struct MultiHandle: ~Copyable {
    private let pointer: UnsafeMutableRawPointer

    init?() {
        guard GlobalCurl.isReady, let pointer = unsafe curl_multi_init() else { return nil }
        // Without a free descriptor libcurl makes a handle that cannot be woken; find out now.
        guard unsafe curl_multi_wakeup(pointer) == CURLM_OK else {
            unsafe curl_multi_cleanup(pointer)
            return nil
        }
        unsafe self.pointer = pointer
    }

    /// Every transfer must have been removed: libcurl does not free the handles it still holds.
    deinit {
        unsafe curl_multi_cleanup(pointer)
    }

    var waker: Waker { unsafe Waker(pointer: pointer) }

    /// Adds a transfer and keeps it alive until ``remove(_:)``, since libcurl now points to it.
    func add(_ transfer: ActiveTransfer) -> CURLMcode {
        let result = unsafe curl_multi_add_handle(pointer, transfer.easy.pointer)
        if result == CURLM_OK { _ = unsafe Unmanaged.passRetained(transfer) }
        return result
    }

    /// Removes and releases a transfer. libcurl calls none of its callbacks afterwards.
    func remove(_ transfer: ActiveTransfer) {
        let result = unsafe curl_multi_remove_handle(pointer, transfer.easy.pointer)
        precondition(result == CURLM_OK, "a transfer is removed once, outside of callbacks")
        unsafe Unmanaged.passUnretained(transfer).release()
    }

    /// Moves every transfer as far as possible without waiting; runs the callbacks.
    func perform() -> CURLMcode {
        var runningCount: Int32 = 0
        return unsafe curl_multi_perform(pointer, &runningCount)
    }

    /// Returns the next finished transfer with its result.
    func nextFinished() -> (transfer: ActiveTransfer, result: CURLcode)? {
        var remainingCount: Int32 = 0
        while let message = unsafe curl_multi_info_read(pointer, &remainingCount) {
            guard unsafe message.pointee.msg == CURLMSG_DONE,
                let easy = unsafe message.pointee.easy_handle
            else { continue }
            // Read first: removing a handle frees its message.
            let result = unsafe message.pointee.data.result
            var context: UnsafeMutableRawPointer?
            let found = unsafe ccurl_easy_get_pointer(easy, CURLINFO_PRIVATE, &context)
            guard found == CURLE_OK, let context = unsafe context else {
                preconditionFailure("every handle has its transfer")
            }
            return unsafe (Unmanaged.fromOpaque(context).takeUnretainedValue(), result)
        }
        return nil
    }

    /// Waits for a socket, a timer of libcurl, a wake-up, or the timeout.
    func poll(timeoutMilliseconds: Int32) -> CURLMcode {
        unsafe curl_multi_poll(pointer, nil, 0, timeoutMilliseconds, nil)
    }

    /// Ends a ``MultiHandle/poll(timeoutMilliseconds:)`` from any thread.
    ///
    /// Unchecked, because it shares the pointer with the curl thread. `curl_multi_wakeup` is the
    /// only function that libcurl allows from other threads. ``CurlLoop`` calls it under a lock,
    /// and removes the waker under the same lock before the multi handle is freed.
    @safe struct Waker: @unchecked Sendable {
        fileprivate let pointer: UnsafeMutableRawPointer

        func wake() {
            // It worked when the handle was made. If it fails later, the poll's timeout makes the
            // command late rather than lost.
            _ = unsafe curl_multi_wakeup(pointer)
        }
    }
}

/// libcurl's process-wide state, set up once before the first handle.
private enum GlobalCurl {
    static let isReady = ccurl_global_init() == CURLE_OK
}
