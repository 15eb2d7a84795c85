package rota

import "encoding/binary"

// Room that an empty inbox keeps, in bytes.
const keptBytes = 64 << 10

// inbox collects bytes of a daemon's stream and gives its frames. Its memory is at most twice what has arrived.
type inbox struct {
	bytes []byte
	// from is where what has not been read begins.
	from int
	err  error
}

func (i *inbox) feed(bytes []byte) {
	if i.err != nil {
		return
	}
	if i.from > 0 {
		i.bytes = i.bytes[:copy(i.bytes, i.bytes[i.from:])]
		i.from = 0
	}
	i.bytes = append(i.bytes, bytes...)
}

// pull gives the next frame; nil if it is not whole. After an error all calls give that error.
func (i *inbox) pull() (any, error) {
	if i.err != nil {
		return nil, i.err
	}
	reply, err := i.read()
	if err != nil {
		i.err = err
		i.bytes, i.from = nil, 0
	}
	return reply, err
}

// read judges the length when its four bytes are there, and the kind when it is.
func (i *inbox) read() (any, error) {
	rest := i.bytes[i.from:]
	if len(rest) < 4 {
		return nil, nil
	}
	length := binary.LittleEndian.Uint32(rest)
	if length < 1 || length > maxReplyBytes {
		return nil, noFrame("length", "a frame of %d bytes; it may have from 1 to %d", length, maxReplyBytes)
	}
	if len(rest) < headBytes {
		return nil, nil
	}
	kind := rest[4]
	if kind < kindWelcome || kind > kindIncluded {
		return nil, noFrame("kind", "there is no frame of kind %#x here", kind)
	}
	whole := 4 + int(length)
	if len(rest) < whole {
		return nil, nil
	}
	reply, err := decode(kind, rest[headBytes:whole])
	i.from += whole
	if i.from == len(i.bytes) {
		i.bytes, i.from = i.bytes[:0], 0
		if cap(i.bytes) > keptBytes {
			i.bytes = nil
		}
	}
	return reply, err
}

// within says whether a frame has begun that is not whole.
func (i *inbox) within() bool { return len(i.bytes) > i.from }
