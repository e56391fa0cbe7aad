import CCurl

extension ActiveTransfer {
    /// Points libcurl's callbacks at this object. They run on the curl thread, inside calls of
    /// ``MultiHandle`` and ``resume()``, while the transfer belongs to the multi handle.
    func installCallbacks() throws(EasyHandle.Refusal) {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        for option in [
            CURLOPT_PRIVATE, CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA,
            CURLOPT_SEEKDATA, CURLOPT_XFERINFODATA, CURLOPT_PREREQDATA,
        ] {
            try unsafe easy.set(option, toPointer: context)
        }
        try easy.set(CURLOPT_NOPROGRESS, to: false)
        try installReceivingCallbacks()
        try installSendingCallbacks()
    }

    private func installReceivingCallbacks() throws(EasyHandle.Refusal) {
        try unsafe easy.check(
            ccurl_easy_set_write_function(easy.pointer) { bytes, size, count, context in
                unsafe ActiveTransfer.at(context)
                    .receiveBody(ActiveTransfer.bytes(bytes, size * count))
            }, CURLOPT_WRITEFUNCTION)
        try unsafe easy.check(
            ccurl_easy_set_header_function(easy.pointer) { bytes, size, count, context in
                unsafe ActiveTransfer.at(context)
                    .receiveHeaderLine(Array(ActiveTransfer.bytes(bytes, size * count)))
            }, CURLOPT_HEADERFUNCTION)
        try unsafe easy.check(
            ccurl_easy_set_progress_function(easy.pointer) { context, _, _, _, sent in
                unsafe ActiveTransfer.at(context).noteSent(Int64(sent))
                return 0
            }, CURLOPT_XFERINFOFUNCTION)
    }

    private func installSendingCallbacks() throws(EasyHandle.Refusal) {
        try unsafe easy.check(
            ccurl_easy_set_prerequest_function(easy.pointer) { context, _, _, _, _ in
                unsafe ActiveTransfer.at(context).beginRequest()
                return CURL_PREREQFUNC_OK
            }, CURLOPT_PREREQFUNCTION)
        try unsafe easy.check(
            ccurl_easy_set_read_function(easy.pointer) { bytes, size, count, context in
                let buffer = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
                return unsafe ActiveTransfer.at(context).readBody(into: buffer)
            }, CURLOPT_READFUNCTION)
        try unsafe easy.check(
            ccurl_easy_set_seek_function(easy.pointer) { context, offset, origin in
                // libcurl documents that it only seeks from the start.
                guard origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
                let isRewound = unsafe ActiveTransfer.at(context).rewindBody(to: Int64(offset))
                return isRewound ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
            }, CURLOPT_SEEKFUNCTION)
    }

    private static func at(_ context: UnsafeMutableRawPointer) -> ActiveTransfer {
        unsafe Unmanaged.fromOpaque(context).takeUnretainedValue()
    }

    private static func bytes(
        _ start: UnsafeMutablePointer<CChar>, _ count: Int
    ) -> UnsafeBufferPointer<UInt8> {
        // `char` and `UInt8` have one layout, and libcurl leaves its buffer alone during the
        // callback.
        unsafe UnsafeBufferPointer(
            start: UnsafeRawPointer(start).assumingMemoryBound(to: UInt8.self), count: count)
    }
}
