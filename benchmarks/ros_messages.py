"""Pictures as sensor_msgs/Image, packed with numpy alone: the code that is measured has no part in them."""

import array

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Image
from std_msgs.msg import Header


def image_message(picture: np.ndarray, encoding: str) -> Image:
    """Pack uint8 (H, W, 3) as rgb8, rgba8 or bgr8, or uint16 millimetres (H, W) as 16UC1 or 32FC1."""
    if encoding == "rgba8":
        picture = np.dstack([picture, np.full(picture.shape[:2], 255, np.uint8)])
    elif encoding == "bgr8":
        picture = picture[..., ::-1]
    elif encoding == "32FC1":
        picture = (picture / 1000).astype("<f4")
    elif encoding not in ("rgb8", "16UC1"):
        raise ValueError(f"unknown encoding {encoding}")
    height, width = picture.shape[:2]
    return Image(
        header=Header(frame_id="camera"),
        encoding=encoding,
        height=height,
        width=width,
        step=picture.nbytes // height,
        data=array.array("B", picture.tobytes()),
    )


def numbered(message: Image, number: int) -> Image:
    """Write a number into the message's stamp, as seconds."""
    message.header.stamp = Time(sec=number)
    return message
