"""Pictures as messages, as a robot sends them."""

import array

import numpy as np
from sensor_msgs.msg import Image
from std_msgs.msg import Header


def image_message(picture, encoding, stamp):
    """A picture of uint8 (H, W, 3) in rgb8 or bgra8, or of uint16 millimetres (H, W) in 16UC1."""
    if encoding == "bgra8":
        opaque = np.full(picture.shape[:2], 255, np.uint8)
        picture = np.dstack([picture[..., ::-1], opaque])
    height, width = picture.shape[:2]
    data = array.array("B", picture.tobytes())
    header = Header(stamp=stamp, frame_id="camera")
    return Image(
        header=header, encoding=encoding, height=height, width=width, step=picture.nbytes // height, data=data
    )
