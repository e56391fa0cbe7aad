#!/bin/sh
# Uploads a file in chunks with curl. Run again after an interruption, it sends only what is missing.
#
#   upload.sh FILE [SERVER]                       SERVER is http://127.0.0.1:8080 by default
#   until upload.sh FILE; do sleep 1; done        over a link that breaks
set -eu

file=${1:?usage: upload.sh FILE [SERVER]}
server=${2:-http://127.0.0.1:8080}
# Holds the Idempotency-Key, by which every run finds the same session, until the file is uploaded.
key_file=$file.kedge-key

# ask ARGUMENT…: puts the server's answer into $answer, or ends the script.
ask() {
    if answer=$(curl --silent --show-error --fail-with-body "$@"); then return 0; fi
    echo "$answer" >&2
    case $answer in
    *'"FILE_GONE"'* | *'"FILE_DAMAGED"'* | *'"IDEMPOTENCY_CONFLICT"'* | *'"SESSION_'*)
        # The session is over, or belongs to an earlier version of the file: the next run begins a new one.
        rm -f "$key_file"
        ;;
    esac
    exit 1
}

# member NAME: prints the value of a text or number in $answer.
member() {
    printf '%s' "$answer" | sed -n "s/.*\"$1\":\"\{0,1\}\([^],}\"]*\).*/\1/p"
}

size=$(($(wc -c <"$file")))
hash=$(sha256sum <"$file" | cut -d ' ' -f 1)
# JSON escapes backslashes and quotes.
name=$(basename "$file" | sed 's/[\\"]/\\&/g')
if [ ! -s "$key_file" ]; then od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$key_file"; fi

ask "$server/uploads/sessions" --header 'Content-Type: application/json' \
    --header "Idempotency-Key: $(cat "$key_file")" \
    --data "{\"fileName\":\"$name\",\"fileSize\":$size,\"fileHashSha256\":\"$hash\"}"
address=$server/uploads/sessions/$(member sessionId)
chunk_size=$(member chunkSize)
chunk_count=$(member totalChunks)

ask "$address"
received=$(printf '%s' "$answer" | sed 's/.*"receivedChunks":\[\([^]]*\)\].*/\1/')
partials=$(printf '%s' "$answer" | sed 's/.*"partialChunks":\[\([^]]*\)\].*/\1/')

index=-1
while [ $((index += 1)) -lt "$chunk_count" ]; do
    case ",$received," in *",$index,"*) continue ;; esac
    skip=$(printf '%s' "$partials" | sed -n "s/.*\"index\":$index,\"receivedBytes\":\([0-9]*\).*/\1/p")
    first=$((index * chunk_size))
    next=$((first + chunk_size < size ? first + chunk_size : size))
    chunk_hash=$(dd if="$file" bs="$chunk_size" skip="$index" count=1 2>/dev/null | sha256sum | cut -d ' ' -f 1)
    dd if="$file" bs="$chunk_size" skip="$index" count=1 2>/dev/null | tail -c "+$((${skip:-0} + 1))" >"$key_file.chunk"
    ask --request PUT "$address/chunks/$index" --data-binary "@$key_file.chunk" \
        --header "Content-Range: bytes $((first + ${skip:-0}))-$((next - 1))/$size" \
        --header "X-Chunk-Hash: sha256=$chunk_hash"
    echo "$(member receivedBytes) of $size bytes" >&2
done

# Until the hash of the file is computed, the answer has no file.
ask --request POST "$address/finalize"
while [ -z "$(member remoteFileId)" ]; do
    sleep 1
    ask --request POST "$address/finalize"
done
rm -f "$key_file" "$key_file.chunk"
echo "$(member remoteFileId) $(member fileHashSha256)"
